// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/wherry-dev/wherry/test/apiserver/private"
)

// FileName is the file of a data folder that holds its identity.
const FileName = "identity.pem"

// Open reads the identity of a data folder, or makes one and keeps it there. The folder must exist and be private to
// this user. The caller sees to it that no other process opens the same folder at the same time.
func Open(dir string) (*Identity, error) {
	path := filepath.Join(dir, FileName)
	data, err := private.ReadFile(path)
	if err == nil {
		i, err := decode(data)
		if err != nil {
			return nil, fmt.Errorf("%s is damaged (%w): put a copy back, or remove it to have a new one made "+
				"(kubeconfigs and tokens given out before are void then)", path, err)
		}
		return i, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	i, err := New()
	if err != nil {
		return nil, err
	}
	data, err = i.encode()
	if err != nil {
		return nil, err
	}
	if err := private.WriteFile(path, data); err != nil {
		return nil, err
	}
	return i, nil
}

func (i *Identity) encode() ([]byte, error) {
	caKey, err := x509.MarshalECPrivateKey(i.caKey)
	if err != nil {
		return nil, fmt.Errorf("encode the key of the certificate authority: %w", err)
	}
	saKey, err := x509.MarshalECPrivateKey(i.saKey)
	if err != nil {
		return nil, fmt.Errorf("encode the service account key: %w", err)
	}
	var out bytes.Buffer
	for _, b := range []pem.Block{
		{Type: blockCert, Bytes: i.ca.Raw},
		{Type: blockCAKey, Bytes: caKey},
		{Type: blockSAKey, Bytes: saKey},
		{Type: blockToken, Bytes: []byte(i.token)},
	} {
		if err := pem.Encode(&out, &b); err != nil {
			return nil, fmt.Errorf("encode the identity: %w", err)
		}
	}
	return out.Bytes(), nil
}

func decode(data []byte) (*Identity, error) {
	blocks := map[string][]byte{}
	for {
		b, rest := pem.Decode(data)
		if b == nil {
			break
		}
		blocks[b.Type], data = b.Bytes, rest
	}
	if len(strings.TrimSpace(string(data))) > 0 {
		return nil, errors.New("it ends in something that is no PEM block")
	}
	for _, want := range []string{blockCert, blockCAKey, blockSAKey, blockToken} {
		if blocks[want] == nil {
			return nil, fmt.Errorf("it has no block %q", want)
		}
	}
	i := &Identity{token: string(blocks[blockToken])}
	var err error
	if i.ca, err = x509.ParseCertificate(blocks[blockCert]); err != nil {
		return nil, fmt.Errorf("its certificate: %w", err)
	}
	if i.caKey, err = x509.ParseECPrivateKey(blocks[blockCAKey]); err != nil {
		return nil, fmt.Errorf("its authority's key: %w", err)
	}
	if i.saKey, err = x509.ParseECPrivateKey(blocks[blockSAKey]); err != nil {
		return nil, fmt.Errorf("its service account key: %w", err)
	}
	if public, ok := i.ca.PublicKey.(*ecdsa.PublicKey); !ok || !public.Equal(i.caKey.Public()) {
		return nil, errors.New("its certificate and key do not belong together")
	}
	if raw, err := hex.DecodeString(i.token); err != nil || len(raw) != tokenBytes {
		return nil, errors.New("its token is not 256 bits in hexadecimal")
	}
	return i, nil
}
