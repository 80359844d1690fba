// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/emicklei/go-restful/v3"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler3"
)

const (
	openAPIv2 = "/openapi/v2"
	openAPIv3 = "/openapi/v3"
	// immutableAge is how long a client may keep a document it asked for by its hash.
	immutableAge = 365 * 24 * time.Hour
)

// describe serves the OpenAPI documents of Kubernetes' own APIs, each built when it is first asked for. kube-apiserver
// builds them all before it is ready, which is a third of its start and 35 MB; most servers are never asked.
func describe(s *genericapiserver.GenericAPIServer, v2 *common.Config, v3 *common.OpenAPIV3Config) error {
	whole := sync.OnceValue(func() http.Handler {
		m := mux.NewPathRecorderMux("openapi-v2")
		routes.OpenAPI{Config: v2}.InstallV2(s.Handler.GoRestfulContainer, m)
		return m
	})
	s.Handler.NonGoRestfulMux.HandleFunc(openAPIv2, func(w http.ResponseWriter, r *http.Request) { whole().ServeHTTP(w, r) })

	docs, err := newDocuments(s.Handler.GoRestfulContainer.RegisteredWebServices(), v3)
	if err != nil {
		return err
	}
	s.Handler.NonGoRestfulMux.HandleFunc(openAPIv3, docs.index)
	s.Handler.NonGoRestfulMux.HandlePrefix(openAPIv3+"/", docs)
	return nil
}

// documents are the version 3 documents, one for each group version.
type documents struct {
	root  []byte // the index
	etag  string
	hash  string // what the index gives as every document's hash: they never change while the process lives
	since time.Time
	group map[string]func() http.Handler
}

func newDocuments(services []*restful.WebService, config *common.OpenAPIV3Config) (*documents, error) {
	// Random, as another process may describe the same group version otherwise, and clients keep what they read by it.
	var nonce [16]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return nil, fmt.Errorf("make a hash for the OpenAPI documents: %w", err)
	}
	d := &documents{hash: strings.ToUpper(hex.EncodeToString(nonce[:])), since: time.Now(), group: map[string]func() http.Handler{}}
	index := handler3.OpenAPIV3Discovery{Paths: map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}}
	for _, service := range services {
		name := strings.TrimPrefix(service.RootPath(), "/")
		d.group[name] = sync.OnceValue(func() http.Handler {
			one := restful.NewContainer()
			one.Add(service)
			m := mux.NewPathRecorderMux("openapi-v3-" + name)
			routes.OpenAPI{V3Config: config}.InstallV3(one, m)
			return m
		})
		at := url.URL{Path: path.Join(openAPIv3, name), RawQuery: url.Values{"hash": {d.hash}}.Encode()}
		index.Paths[name] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: at.String()}
	}
	var err error
	if d.root, err = json.Marshal(index); err != nil {
		return nil, fmt.Errorf("encode the index of the OpenAPI documents: %w", err)
	}
	d.etag = `"` + d.hash + `"`
	return d, nil
}

// index answers which documents there are.
func (d *documents) index(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Etag", d.etag)
	w.Header().Set("Content-Type", "application/json")
	http.ServeContent(w, r, openAPIv3, d.since, strings.NewReader(string(d.root)))
}

// ServeHTTP answers one document.
func (d *documents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	build := d.group[strings.TrimPrefix(r.URL.Path, openAPIv3+"/")]
	if build == nil {
		http.NotFound(w, r)
		return
	}
	if r.URL.Query().Get("hash") == d.hash {
		// The builder below knows the document by another hash and would send the client there.
		bare := *r.URL
		bare.RawQuery = ""
		r = r.Clone(r.Context())
		r.URL = &bare
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", time.Now().Add(immutableAge).UTC().Format(http.TimeFormat))
	}
	build().ServeHTTP(w, r)
}
