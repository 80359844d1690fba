// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package apiutil

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// acceptAggregated asks for the aggregated discovery documents; a server that is too old for them answers with the plain
// ones.
const acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

// maxDiscoveryFetches bounds the requests that are under way at once when an old server has to be asked group by group.
const maxDiscoveryFetches = 8

// discoveryTimeout bounds one look at the server, all its requests together.
const discoveryTimeout = 32 * time.Second

// ErrResourceDiscoveryFailed says, by group and version, why the resources of some of the server's API groups could not be
// learned, most often because the extension server behind them is down. Other groups are not affected. It is returned
// wrapped and by pointer: use errors.As with a *ErrResourceDiscoveryFailed.
type ErrResourceDiscoveryFailed map[schema.GroupVersion]error

// Error names each group and version with its reason, in order.
func (e *ErrResourceDiscoveryFailed) Error() string {
	parts := make([]string, 0, len(*e))
	for _, gv := range e.versions() {
		parts = append(parts, fmt.Sprintf("%s: %v", gv, (*e)[gv]))
	}
	return "unable to retrieve the complete list of server APIs: " + strings.Join(parts, ", ")
}

// Unwrap gives the reasons, in the order of Error.
func (e *ErrResourceDiscoveryFailed) Unwrap() []error {
	errs := make([]error, 0, len(*e))
	for _, gv := range e.versions() {
		errs = append(errs, (*e)[gv])
	}
	return errs
}

func (e *ErrResourceDiscoveryFailed) versions() []schema.GroupVersion {
	sorted := slices.Collect(maps.Keys(*e))
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].String() < sorted[j].String() })
	return sorted
}

// errStale is the reason that an aggregated document gives for a version without telling more.
var errStale = errors.New("the server marks its discovery as stale: the extension server behind it does not answer")

// A resource is what the mapper needs to know of one resource of the server.
type resource struct {
	name, singular, kind string
	namespaced           bool
}

// A version is one version of a group. err says why its resources are not known.
type version struct {
	name      string
	resources []resource
	err       error
}

// A group is one API group of the server, preferred version first.
type group struct {
	name     string
	versions []version
}

// groupDocument is the part of an aggregated discovery document that is read.
type groupDocument struct {
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Versions []struct {
			Version   string `json:"version"`
			Freshness string `json:"freshness"`
			Resources []struct {
				Resource     string `json:"resource"`
				ResponseKind *struct {
					Kind string `json:"kind"`
				} `json:"responseKind"`
				Scope            string `json:"scope"`
				SingularResource string `json:"singularResource"`
			} `json:"resources"`
		} `json:"versions"`
	} `json:"items"`
}

// discovery asks the server which resources it has.
type discovery struct{ client rest.Interface }

func newDiscovery(config *rest.Config, httpClient *http.Client) (*discovery, error) {
	cfg := rest.CopyConfig(config)
	cfg.GroupVersion, cfg.APIPath = &schema.GroupVersion{}, ""
	cfg.ContentType, cfg.AcceptContentTypes = "application/json", ""
	cfg.QPS, cfg.RateLimiter = -1, nil // the mapper's refreshInterval and maxDiscoveryFetches are its limits
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(metaScheme()).WithoutConversion()
	if cfg.UserAgent == "" {
		cfg.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	client, err := rest.UnversionedRESTClientForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, err
	}
	return &discovery{client: client}, nil
}

// groups asks for the whole of the server: two requests, or more if the server is too old for aggregated discovery.
func (d *discovery) groups(ctx context.Context) ([]group, error) {
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	roots := [...]string{"/api", "/apis"}
	var found [len(roots)][]group
	var errs [len(roots)]error
	var wait sync.WaitGroup
	for i, root := range roots {
		wait.Go(func() { found[i], errs[i] = d.root(ctx, root) })
	}
	wait.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return slices.Concat(found[:]...), nil
}

// root asks for one of the two documents. A root that the server does not have, such as /api on a server without the core
// group, has no groups.
func (d *discovery) root(ctx context.Context, path string) ([]group, error) {
	body, contentType, err := d.get(ctx, path, acceptAggregated)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("ask the API server for its resources (%s): %w", path, err)
	case isAggregated(contentType):
		return parseGroups(path, body)
	case path == "/api":
		return d.coreGroup(ctx, body)
	default:
		return d.namedGroups(ctx, body)
	}
}

func (d *discovery) get(ctx context.Context, path, accept string) ([]byte, string, error) {
	var contentType string
	result := d.client.Get().AbsPath(path).SetHeader("Accept", accept).Do(ctx).ContentType(&contentType)
	if err := result.Error(); err != nil {
		return nil, "", err
	}
	body, err := result.Raw()
	return body, contentType, err
}

func isAggregated(contentType string) bool {
	_, params, err := mime.ParseMediaType(contentType)
	return err == nil && params["g"] == "apidiscovery.k8s.io" && params["as"] == "APIGroupDiscoveryList"
}

func parseGroups(path string, body []byte) ([]group, error) {
	var doc groupDocument
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, fmt.Errorf("read the API server's list of resources (%s): %w", path, err)
	}
	groups := make([]group, 0, len(doc.Items))
	for _, item := range doc.Items {
		g := group{name: item.Metadata.Name}
		for _, v := range item.Versions {
			out := version{name: v.Version}
			if v.Freshness == "Stale" {
				out.err = errStale
			}
			for _, r := range v.Resources {
				if r.ResponseKind == nil || r.ResponseKind.Kind == "" {
					continue // a resource that only carries sub-resources has no kind of its own
				}
				out.resources = append(out.resources, resource{
					name: r.Resource, singular: r.SingularResource,
					kind: r.ResponseKind.Kind, namespaced: r.Scope == "Namespaced",
				})
			}
			g.versions = append(g.versions, out)
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// coreGroup reads the plain document of /api and asks for the versions that it lists.
func (d *discovery) coreGroup(ctx context.Context, body []byte) ([]group, error) {
	var versions metav1.APIVersions
	if err := json.Unmarshal(body, &versions); err != nil {
		return nil, fmt.Errorf("read the API server's list of core versions: %w", err)
	}
	g := group{}
	for _, v := range versions.Versions {
		g.versions = append(g.versions, version{name: v})
	}
	d.fillVersions(ctx, []group{g})
	return []group{g}, nil
}

// namedGroups reads the plain document of /apis and asks for every version that it lists.
func (d *discovery) namedGroups(ctx context.Context, body []byte) ([]group, error) {
	var list metav1.APIGroupList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("read the API server's list of groups: %w", err)
	}
	groups := make([]group, 0, len(list.Groups))
	for _, item := range list.Groups {
		g := group{name: item.Name}
		for _, v := range item.Versions {
			if v.Version == item.PreferredVersion.Version {
				g.versions = append([]version{{name: v.Version}}, g.versions...)
				continue
			}
			g.versions = append(g.versions, version{name: v.Version})
		}
		groups = append(groups, g)
	}
	d.fillVersions(ctx, groups)
	return groups, nil
}

// fillVersions asks for the resources of each version, a few at a time. A version that fails keeps its reason and does
// not disturb the others.
func (d *discovery) fillVersions(ctx context.Context, groups []group) {
	slots := make(chan struct{}, maxDiscoveryFetches)
	var wait sync.WaitGroup
	for _, g := range groups {
		for i := range g.versions {
			wait.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				v := &g.versions[i]
				v.resources, v.err = d.version(ctx, schema.GroupVersion{Group: g.name, Version: v.name})
			})
		}
	}
	wait.Wait()
}

func (d *discovery) version(ctx context.Context, gv schema.GroupVersion) ([]resource, error) {
	body, _, err := d.get(ctx, apiPath(gv.Group)+"/"+gv.String(), "application/json")
	if apierrors.IsNotFound(err) {
		return nil, nil // it went away between the two requests
	}
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	resources := make([]resource, 0, len(list.APIResources))
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") {
			continue
		}
		resources = append(resources, resource{name: r.Name, singular: r.SingularName, kind: r.Kind, namespaced: r.Namespaced})
	}
	return resources, nil
}
