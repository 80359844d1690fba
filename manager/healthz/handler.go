// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package healthz

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/wherry-dev/wherry/client/log"
)

// Checker says whether something is well: nil means yes. It is called for each probe, from many goroutines at once, and
// should end with the request's context. The error goes to the log, never into an answer.
type Checker func(req *http.Request) error

// Ping is the check that an answering process passes by answering.
var Ping Checker = func(*http.Request) error { return nil }

// withheld stands for a failure's reason in an answer: whoever reaches the port may read it.
const withheld = "reason withheld"

// Handler serves the sum of its checks at "/" and each of them at "/NAME". The path is taken as it comes, so a handler that
// is mounted deeper needs http.StripPrefix.
//
// The sum is 200 "ok", or 500 with a line for each check. The query "verbose" asks for the lines also when all is well;
// "exclude=NAME", as often as wanted, leaves a check out. Without any check both answer as if there was the check "ping".
type Handler struct {
	// Checks are the checks by name. They must not change while the handler serves.
	Checks map[string]Checker
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	checks := h.Checks
	if len(checks) == 0 {
		checks = map[string]Checker{"ping": Ping}
	}
	name := strings.TrimPrefix(path.Clean("/"+req.URL.Path), "/")
	if name == "" {
		serveSum(w, req, checks)
		return
	}
	check, known := checks[name]
	if !known {
		http.NotFound(w, req)
		return
	}
	CheckHandler{Checker: check}.ServeHTTP(w, req)
}

func serveSum(w http.ResponseWriter, req *http.Request, checks map[string]Checker) {
	query := req.URL.Query()
	excluded := map[string]bool{}
	for _, names := range query["exclude"] {
		for name := range strings.SplitSeq(names, ",") {
			excluded[name] = true
		}
	}
	delete(excluded, "")

	logger := log.FromContext(req.Context()).WithName("healthz")
	var lines strings.Builder
	var failed []string
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		if excluded[name] {
			delete(excluded, name)
			fmt.Fprintf(&lines, "[+]%s excluded: ok\n", name)
		} else if err := checks[name](req); err != nil {
			logger.V(1).Info("healthz check failed", "checker", name, "error", err.Error())
			failed = append(failed, name)
			fmt.Fprintf(&lines, "[-]%s failed: %s\n", name, withheld)
		} else {
			fmt.Fprintf(&lines, "[+]%s ok\n", name)
		}
	}
	if len(excluded) > 0 {
		fmt.Fprintf(&lines, "warn: some health checks cannot be excluded: no matches for %s\n", quoted(slices.Sorted(maps.Keys(excluded))))
	}

	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch {
	case len(failed) > 0:
		logger.Info("healthz check failed", "failed", failed)
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, lines.String(), "healthz check failed\n")
	case query.Has("verbose"):
		fmt.Fprint(w, lines.String(), "healthz check passed\n")
	default:
		fmt.Fprint(w, "ok")
	}
}

// CheckHandler serves one check at any path: 200 "ok", or 500 without the reason.
type CheckHandler struct {
	// Checker is the check; it must be set.
	Checker
}

// ServeHTTP implements http.Handler.
func (h CheckHandler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if err := h.Checker(req); err != nil {
		log.FromContext(req.Context()).WithName("healthz").V(1).Info("healthz check failed", "path", req.URL.Path, "error", err.Error())
		http.Error(w, "internal server error: "+withheld, http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, "ok")
}

// quoted is the names as a list in the format of the Kubernetes components' probes.
func quoted(names []string) string {
	q := make([]string, len(names))
	for i, name := range names {
		q[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(q, ",")
}
