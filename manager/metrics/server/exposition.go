// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// exposition answers with what it gathers, in the format and the compression that the request prefers, and with status 500
// if anything could not be gathered. The query name[] picks families by their names.
type exposition struct{ prometheus.Gatherer }

func (e exposition) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	families, err := e.Gather()
	if err != nil {
		http.Error(w, "gather metrics: "+err.Error(), http.StatusInternalServerError)
		return
	}
	if names := req.URL.Query()["name[]"]; len(names) > 0 {
		families = slices.DeleteFunc(families, func(f *dto.MetricFamily) bool { return !slices.Contains(names, f.GetName()) })
	}
	format := expfmt.Negotiate(req.Header)
	w.Header().Set("Content-Type", string(format))
	if prefersGzip(req.Header) {
		w.Header().Set("Content-Encoding", "gzip")
		zipped := gzip.NewWriter(w)
		defer func() { _ = zipped.Close() }() // fails only if the client has gone
		write(zipped, format, families)
		return
	}
	write(w, format, families)
}

// write breaks the connection off where it fails: an answer that lacks families must not look whole.
func write(w io.Writer, format expfmt.Format, families []*dto.MetricFamily) {
	encoder := expfmt.NewEncoder(w, format)
	for _, family := range families {
		if encoder.Encode(family) != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

func prefersGzip(header http.Header) bool {
	var zipped, plain float64
	for _, line := range header.Values("Accept-Encoding") {
		for offer := range strings.SplitSeq(line, ",") {
			coding, parameter, _ := strings.Cut(offer, ";")
			weight := 1.0
			if q, given := strings.CutPrefix(strings.TrimSpace(parameter), "q="); given {
				weight, _ = strconv.ParseFloat(q, 64) // what is no number has no weight
			}
			switch strings.TrimSpace(coding) {
			case "gzip":
				zipped = weight
			case "identity":
				plain = weight
			}
		}
	}
	return zipped > plain
}
