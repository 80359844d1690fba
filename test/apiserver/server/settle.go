// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	crds "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	// settlePeriod is how often the server's parts are asked whether they have seen a change.
	settlePeriod = 2 * time.Millisecond
	crdPrefix    = "/registry/apiextensions.k8s.io/customresourcedefinitions/"
)

// settle waits until the server's own informers, the handler of custom resources and discovery have seen changes.
func (s *Server) settle(ctx context.Context, changes []change) error {
	newest := map[string]int64{} // by the first part of the key: what it begins with belongs to one resource
	var definitions []change
	for _, c := range changes {
		if strings.HasPrefix(c.key, crdPrefix) {
			definitions = append(definitions, c)
		}
		for prefix := range s.informed {
			if strings.HasPrefix(c.key, prefix) {
				newest[prefix] = max(newest[prefix], c.revision)
			}
		}
	}
	for prefix, revision := range newest {
		if err := poll(ctx, func() error { return seen(s.informed[prefix], revision) }); err != nil {
			return fmt.Errorf("informer of %s: %w", prefix, err)
		}
	}
	if len(definitions) == 0 {
		return nil
	}
	client, err := rest.HTTPClientFor(s.config)
	if err != nil {
		return fmt.Errorf("make a client of the server: %w", err)
	}
	defer client.CloseIdleConnections()
	for _, c := range definitions {
		if err := poll(ctx, func() error { return s.served(ctx, client, c) }); err != nil {
			return fmt.Errorf("%s: %w", strings.TrimPrefix(c.key, crdPrefix), err)
		}
	}
	return nil
}

// poll calls check until it returns nil or the context ends.
func poll(ctx context.Context, check func() error) error {
	tick := time.NewTicker(settlePeriod)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// seen tells whether an informer's store has come to a revision.
func seen(i cache.SharedIndexInformer, revision int64) error {
	at := i.GetStore().LastStoreSyncResourceVersion()
	if n, err := strconv.ParseInt(at, 10, 64); err == nil && n >= revision {
		return nil
	}
	return fmt.Errorf("it has come to %q, not %d", at, revision)
}

// served tells whether a definition that was put back is served and discovered, and one that was deleted is not. What
// a definition says it reads from the definition itself, and of a deleted one from its name: plural.group.
func (s *Server) served(ctx context.Context, client *http.Client, c change) error {
	name := strings.TrimPrefix(c.key, crdPrefix)
	plural, group, _ := strings.Cut(name, ".")
	kinds, err := s.discovered(ctx, client, group)
	if err != nil {
		return err
	}
	if c.deleted {
		for _, resources := range kinds {
			if resources[plural] {
				return errors.New("discovery still names it")
			}
		}
		return nil
	}
	kv, _ := s.parts.store.Get(c.key)
	if kv == nil {
		return nil // somebody was quicker
	}
	var crd crds.CustomResourceDefinition
	if err := json.Unmarshal(kv.Value, &crd); err != nil {
		return nil //nolint:nilerr // stored in some other way (encrypted): then nothing can be said about it
	}
	established := false
	for _, condition := range crd.Status.Conditions {
		established = established || condition.Type == crds.Established && condition.Status == crds.ConditionTrue
	}
	for _, v := range crd.Spec.Versions {
		if !v.Served || !established {
			continue
		}
		if !kinds[v.Name][plural] {
			return fmt.Errorf("discovery does not name it in %s yet", v.Name)
		}
		if err := s.ask(ctx, client, "/apis/"+group+"/"+v.Name+"/"+plural+"?limit=1"); err != nil {
			return err
		}
	}
	return nil
}

// discovered returns the resources of a group, by version, as aggregated discovery names them now.
func (s *Server) discovered(ctx context.Context, client *http.Client, group string) (map[string]map[string]bool, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.config.Host+"/apis", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	answer, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Versions []struct {
				Version   string `json:"version"`
				Resources []struct {
					Resource string `json:"resource"`
				} `json:"resources"`
			} `json:"versions"`
		} `json:"items"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
		return nil, fmt.Errorf("read discovery: %w", err)
	}
	out := map[string]map[string]bool{}
	for _, g := range list.Items {
		if g.Metadata.Name != group {
			continue
		}
		for _, v := range g.Versions {
			out[v.Version] = map[string]bool{}
			for _, r := range v.Resources {
				out[v.Version][r.Resource] = true
			}
		}
	}
	return out, nil
}

// informersByPrefix finds the informers of a factory that run, by the prefix of the keys they are informed of.
func informersByPrefix(ctx context.Context, factory informers.SharedInformerFactory, prefix func(resource, group string) string) map[string]cache.SharedIndexInformer {
	out := map[string]cache.SharedIndexInformer{}
	for t := range factory.WaitForCacheSync(ctx.Done()) {
		object, ok := reflect.New(t.Elem()).Interface().(runtime.Object)
		if !ok {
			continue
		}
		kinds, _, err := scheme.Scheme.ObjectKinds(object)
		if err != nil {
			continue
		}
		resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
		running := factory.InformerFor(object, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return nil })
		out["/registry/"+prefix(resource.Resource, resource.Group)+"/"] = running
	}
	return out
}
