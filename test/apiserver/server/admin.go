// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"k8s.io/apiserver/pkg/server/mux"
)

// AdminPath is where the server serves what Kubernetes has no API for. RBAC lets nobody there but members of
// system:masters, and those who are given the path as a nonResourceURL.
//
//	POST   /wherry/snapshots               take a snapshot                  {"name":"1","revision":210}
//	POST   /wherry/snapshots/NAME/restore  go back to it                    {"revision":260,"deleted":3,"written":1}
//	DELETE /wherry/snapshots/NAME          forget it
//	POST   /wherry/users                   {"name":"ann","groups":["devs"]} {"certificate":"-----BEGIN...","key":"..."}
const AdminPath = "/wherry"

const (
	// maxSnapshots is how many snapshots are kept by name: each holds the memory of what changed since.
	maxSnapshots = 1000
	// maxAdminBody bounds a request's body.
	maxAdminBody = 64 << 10
)

// admin serves AdminPath.
type admin struct {
	server *Server

	mu        sync.Mutex // guards what follows
	last      int
	snapshots map[string]*Snapshot
}

func (s *Server) serveAdmin(m *mux.PathRecorderMux) {
	a := &admin{server: s, snapshots: map[string]*Snapshot{}}
	routes := http.NewServeMux()
	routes.HandleFunc("POST "+AdminPath+"/snapshots", a.snapshot)
	routes.HandleFunc("POST "+AdminPath+"/snapshots/{name}/restore", a.restore)
	routes.HandleFunc("DELETE "+AdminPath+"/snapshots/{name}", a.forget)
	routes.HandleFunc("POST "+AdminPath+"/users", a.user)
	m.UnlistedHandlePrefix(AdminPath+"/", routes)
}

func (a *admin) snapshot(w http.ResponseWriter, _ *http.Request) {
	taken := a.server.Snapshot()
	a.mu.Lock()
	full := len(a.snapshots) >= maxSnapshots
	if !full {
		a.last++
		a.snapshots[strconv.Itoa(a.last)] = taken
	}
	name := strconv.Itoa(a.last)
	a.mu.Unlock()
	if full {
		reply(w, http.StatusTooManyRequests, fmt.Errorf("there are %d snapshots: forget some with DELETE", maxSnapshots))
		return
	}
	reply(w, http.StatusCreated, map[string]any{"name": name, "revision": taken.Revision()})
}

func (a *admin) find(r *http.Request) *Snapshot {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.snapshots[r.PathValue("name")]
}

func (a *admin) restore(w http.ResponseWriter, r *http.Request) {
	p := a.find(r)
	if p == nil {
		reply(w, http.StatusNotFound, fmt.Errorf("there is no snapshot %q", r.PathValue("name")))
		return
	}
	done, err := a.server.Restore(r.Context(), p)
	if err != nil {
		reply(w, http.StatusInternalServerError, err)
		return
	}
	reply(w, http.StatusOK, done)
}

func (a *admin) forget(w http.ResponseWriter, r *http.Request) {
	if a.find(r) == nil {
		reply(w, http.StatusNotFound, fmt.Errorf("there is no snapshot %q", r.PathValue("name")))
		return
	}
	a.mu.Lock()
	delete(a.snapshots, r.PathValue("name"))
	a.mu.Unlock()
	reply(w, http.StatusOK, map[string]any{})
}

func (a *admin) user(w http.ResponseWriter, r *http.Request) {
	var who struct {
		Name   string   `json:"name"`
		Groups []string `json:"groups"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAdminBody)).Decode(&who); err != nil {
		reply(w, http.StatusBadRequest, fmt.Errorf("read the request: %w", err))
		return
	}
	if who.Name == "" {
		reply(w, http.StatusBadRequest, errors.New("a user needs a name"))
		return
	}
	cert, key, err := a.server.parts.identity.Client(who.Name, who.Groups)
	if err != nil {
		reply(w, http.StatusInternalServerError, err)
		return
	}
	reply(w, http.StatusCreated, map[string]string{"certificate": string(cert), "key": string(key)})
}

// reply answers with a JSON object; an error becomes {"error":"..."}.
func reply(w http.ResponseWriter, status int, body any) {
	if err, ok := body.(error); ok {
		body = map[string]string{"error": err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client has gone, then
}
