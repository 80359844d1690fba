// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
)

// usersPath is where the embedded server makes users.
const usersPath = "/wherry/users"

// issued is the Authn of the embedded server, whose own authority signs a
// certificate for each user.
type issued struct {
	admin *rest.Config // nil while the server does not run
}

func (*issued) Configure(string, *Arguments) error { return nil }
func (*issued) Start() error                       { return nil }

func (i *issued) Stop() error {
	i.admin = nil
	return nil
}

func (i *issued) AddUser(user User, baseCfg *rest.Config) (*rest.Config, error) {
	if user.Name == "" {
		return nil, errors.New("a user needs a name")
	}
	if i.admin == nil {
		return nil, errors.New("the API server does not run")
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	var pair struct{ Certificate, Key, Error string }
	if err := ask(ctx, i.admin, http.MethodPost, usersPath, map[string]any{"name": user.Name, "groups": user.Groups}, &pair); err != nil {
		return nil, err
	}
	return withCertificate(baseCfg, []byte(pair.Certificate), []byte(pair.Key)), nil
}

// withCertificate is a copy of cfg that authenticates by a certificate and by
// nothing else.
func withCertificate(cfg *rest.Config, cert, key []byte) *rest.Config {
	out := rest.AnonymousClientConfig(cfg)
	out.CertData, out.KeyData = cert, key
	return out
}

// ask sends a request to one of the embedded server's own paths and decodes its
// answer, unless that is nil.
func ask(ctx context.Context, admin *rest.Config, method, path string, body, answer any) error {
	c, err := rest.HTTPClientFor(admin)
	if err != nil {
		return err
	}
	sent, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, admin.Host+path, bytes.NewReader(sent))
	if err != nil {
		return err
	}
	got, err := c.Do(r)
	if err != nil {
		return err
	}
	defer got.Body.Close()
	content, err := io.ReadAll(got.Body)
	if err != nil {
		return err
	}
	if got.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", method, path, got.Status, bytes.TrimSpace(content))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(content, answer)
}

// certificates is the Authn of a real kube-apiserver: an authority of this
// process's signs a certificate for each user.
type certificates struct {
	authority *authority
	file      string // of the authority, for the server
}

func newCertificates() (*certificates, error) {
	a, err := newAuthority()
	if err != nil {
		return nil, err
	}
	return &certificates{authority: a}, nil
}

func (c *certificates) Configure(workDir string, args *Arguments) error {
	c.file = filepath.Join(workDir, "client-ca.crt")
	args.Set("client-ca-file", c.file)
	return nil
}

func (c *certificates) Start() error {
	return os.WriteFile(c.file, c.authority.bundle(), 0o600)
}

func (*certificates) Stop() error { return nil }

func (c *certificates) AddUser(user User, baseCfg *rest.Config) (*rest.Config, error) {
	if user.Name == "" {
		return nil, errors.New("a user needs a name")
	}
	cert, key, err := c.authority.client(user)
	if err != nil {
		return nil, err
	}
	return withCertificate(baseCfg, cert, key), nil
}
