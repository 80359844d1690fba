// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const leasePath = "/apis/coordination.k8s.io/v1/namespaces/"

// LeaseServer is an API server for Leases, without a network: it is the transport of a client. It knows get, create and
// update, and refuses an update whose resourceVersion is old. The zero value has no leases.
type LeaseServer struct {
	mu      sync.Mutex
	leases  map[string]*coordinationv1.Lease // by "namespace/name"
	version int
	fail    error
	writes  []Write
}

// Write is one write that a [LeaseServer] has stored.
type Write struct {
	Method, UserAgent string
	Lease             *coordinationv1.Lease
}

// Fail cuts every client off with err until it is nil again.
func (s *LeaseServer) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// Lease returns a copy of the lease, nil if it is not there.
func (s *LeaseServer) Lease(namespace, name string) *coordinationv1.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[namespace+"/"+name].DeepCopy()
}

// Put stores a copy of lease, as a foreign writer would.
func (s *LeaseServer) Put(lease *coordinationv1.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(lease.DeepCopy())
}

// Writes returns what clients have written, oldest first.
func (s *LeaseServer) Writes() []Write {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Write(nil), s.writes...)
}

func (s *LeaseServer) store(lease *coordinationv1.Lease) {
	if s.leases == nil {
		s.leases = map[string]*coordinationv1.Lease{}
	}
	s.version++
	lease.ResourceVersion = strconv.Itoa(s.version)
	s.leases[lease.Namespace+"/"+lease.Name] = lease
}

// RoundTrip implements http.RoundTripper.
func (s *LeaseServer) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return nil, s.fail
	}
	lease, err := s.serve(req)
	if err != nil {
		status := err.Status()
		status.APIVersion, status.Kind = "v1", "Status"
		return answer(req, int(status.Code), &status)
	}
	lease = lease.DeepCopy()
	lease.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	return answer(req, http.StatusOK, lease)
}

func (s *LeaseServer) serve(req *http.Request) (*coordinationv1.Lease, *apierrors.StatusError) {
	rest, ok := strings.CutPrefix(req.URL.Path, leasePath)
	part := strings.Split(rest, "/")
	if !ok || len(part) < 2 || part[1] != "leases" {
		return nil, apierrors.NewBadRequest("no such path " + req.URL.Path)
	}
	if req.Method == http.MethodGet {
		found := s.leases[part[0]+"/"+part[2]]
		if found == nil {
			return nil, apierrors.NewNotFound(leases, part[2])
		}
		return found, nil
	}
	lease := &coordinationv1.Lease{}
	if err := json.NewDecoder(req.Body).Decode(lease); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if lease.Kind != "Lease" || lease.Namespace != part[0] {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a %s in %q sent to %s", lease.Kind, lease.Namespace, req.URL.Path))
	}
	found := s.leases[lease.Namespace+"/"+lease.Name]
	switch {
	case *lease.Spec.LeaseDurationSeconds <= 0:
		return nil, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("Lease").GroupKind(), lease.Name, nil)
	case req.Method == http.MethodPost && found != nil:
		return nil, apierrors.NewAlreadyExists(leases, lease.Name)
	case req.Method == http.MethodPut && found == nil:
		return nil, apierrors.NewNotFound(leases, lease.Name)
	case req.Method == http.MethodPut && lease.ResourceVersion != found.ResourceVersion:
		return nil, apierrors.NewConflict(leases, lease.Name, fmt.Errorf("version %s is there", found.ResourceVersion))
	}
	s.store(lease)
	s.writes = append(s.writes, Write{req.Method, req.UserAgent(), lease.DeepCopy()})
	return lease, nil
}

func answer(req *http.Request, code int, obj any) (*http.Response, error) {
	b, err := json.Marshal(obj)
	return &http.Response{
		StatusCode: code, Request: req, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(string(b))),
	}, err
}
