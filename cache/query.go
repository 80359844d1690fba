// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// minIndexed is the number of objects below which looking at each is cheaper than a label index.
const minIndexed = 64

// stored is an object and its key, as a read found it.
type stored struct {
	key string
	obj any
}

// sortByKey sorts as the API server does. slices.SortFunc is faster and would be 12 kB of machine code for this type alone; lists
// are sorted here only while a write is not in the store yet, or over several namespaces.
func sortByKey(all []stored) {
	sort.Slice(all, func(i, j int) bool { return all[i].key < all[j].key })
}

// term is one requirement of a field selector.
type term struct {
	field, value string
	not          bool
}

// query tells which objects a List wants from a store.
type query struct {
	// prefix of the keys: "namespace/", or empty for all.
	prefix string
	// after leaves out all keys up to and with this one.
	after string
	// limit bounds the answer; 0 means no limit.
	limit    int
	selector labels.Selector // nil for everything
	terms    []term
	// index gives the names under which an index for a field may be, best first.
	index func(field string) []string
}

// fieldTerms takes a field selector apart.
func fieldTerms(sel fields.Selector) []term {
	if sel == nil || sel.Empty() {
		return nil
	}
	var out []term
	for _, r := range sel.Requirements() {
		out = append(out, term{field: r.Field, value: r.Value, not: r.Operator == selection.NotEquals})
	}
	return out
}

// query returns the objects that q wants, in key order, and whether the limit left some out.
func (s *store) query(q *query) (found []stored, more bool, err error) {
	found, more, _, err = s.queryAt(q)
	return found, more, err
}

// queryAt is query, and tells the version of the store that it saw.
func (s *store) queryAt(q *query) (found []stored, more bool, version string, err error) {
	for {
		s.mu.RLock()
		missing := s.missingLabels(q.selector)
		if len(missing) > 0 {
			s.mu.RUnlock()
			for _, key := range missing {
				s.labelIndex(key)
			}
			continue // built now, or above the limit and no longer missing
		}
		defer s.mu.RUnlock()
		found, more, err = s.run(q)
		return found, more, s.version, err
	}
}

// missingLabels returns the label keys of equality terms that should have an index and have none.
func (s *store) missingLabels(sel labels.Selector) []string {
	if sel == nil || sel.Empty() || len(s.items) < minIndexed || len(s.labels) >= maxLabelIndexes {
		return nil
	}
	var out []string
	for key := range equalities(sel) {
		if s.labels[key] == nil {
			out = append(out, key)
		}
	}
	return out
}

// equalities walks the terms of a selector that name the values they take.
func equalities(sel labels.Selector) func(yield func(string, labels.Requirement) bool) {
	return func(yield func(string, labels.Requirement) bool) {
		reqs, _ := sel.Requirements()
		for _, r := range reqs {
			switch r.Operator() {
			case selection.Equals, selection.DoubleEquals, selection.In:
				if !yield(r.Key(), r) {
					return
				}
			}
		}
	}
}

// plan is how a query is run: walk one set of postings, keep what is in the others too and passes the filters.
type plan struct {
	walk    []*order // nil: walk everything
	walked  bool
	size    int      // of the walk
	others  []*order // may hold the walk itself
	filters []func(*item) bool
}

// offer makes the union of postings the walk if it is the smallest so far. It reports whether it did.
func (p *plan) offer(postings []*order) bool {
	size := 0
	for _, o := range postings {
		size += o.len()
	}
	if p.walked && size >= p.size {
		return false
	}
	p.walk, p.walked, p.size = postings, true, size
	return true
}

// settle makes everything the walk if nothing smaller was offered, and filters of the postings that are not walked.
func (p *plan) settle(s *store) {
	if !p.walked {
		p.walk, p.size = []*order{&s.order}, s.order.len()
	}
	for _, o := range p.others {
		if len(p.walk) != 1 || p.walk[0] != o {
			p.filters = append(p.filters, func(it *item) bool { return o.has(it.key) })
		}
	}
}

// fewFound is room for what is found of a walk where it is not known how much that is.
const fewFound = 16

// room is how many objects are worth making room for ahead of a walk.
func (p *plan) room(q *query) int {
	n := p.size
	if len(p.filters) > 0 || q.prefix != "" || q.after != "" {
		n = min(n, fewFound)
	}
	if q.limit > 0 {
		n = min(n, q.limit)
	}
	return n
}

// run answers a query. The caller holds the lock.
func (s *store) run(q *query) (found []stored, more bool, err error) {
	var p plan
	if err := s.planFields(q, &p); err != nil {
		return nil, false, err
	}
	s.planLabels(q, &p)
	p.settle(s)
	found = make([]stored, 0, p.room(q))
	keep := func(it *item) bool {
		for _, f := range p.filters {
			if !f(it) {
				return true
			}
		}
		if q.limit > 0 && len(found) == q.limit {
			more = true
			return false
		}
		found = append(found, stored{it.key, it.obj})
		return true
	}
	switch {
	case len(p.walk) == 1:
		walk(p.walk[0], q, keep)
	default:
		walk(union(p.walk, q), q, keep)
	}
	return found, more, nil
}

func walk(o *order, q *query, keep func(*item) bool) {
	for it := range o.from(q.prefix, q.after) {
		if !keep(it) {
			return
		}
	}
}

// union merges postings that may share items into one order.
func union(postings []*order, q *query) *order {
	var items []*item
	for _, o := range postings {
		items = slices.AppendSeq(items, o.from(q.prefix, q.after))
	}
	slices.SortFunc(items, func(a, b *item) int { return cmp.Compare(a.key, b.key) })
	items = slices.CompactFunc(items, func(a, b *item) bool { return a.key == b.key })
	var out order
	out.fill(items)
	return &out
}

// planFields makes each field term the walk or a filter.
func (s *store) planFields(q *query, p *plan) error {
	for _, t := range q.terms {
		x := s.indexFor(q, t.field)
		if x == nil {
			if s.planBuiltin(t, p) {
				continue
			}
			return fmt.Errorf("no index on field %q", t.field)
		}
		if err := x.fault(); err != nil {
			return err
		}
		posting := x.postings[t.value]
		switch {
		case t.not && posting == nil:
		case t.not:
			p.filters = append(p.filters, func(it *item) bool { return !posting.has(it.key) })
		case posting == nil:
			p.offer(nil) // nothing has the value, so nothing is walked
		default:
			p.offer([]*order{posting})
			p.others = append(p.others, posting)
		}
	}
	return nil
}

// indexFor returns the best index for a field, or nil.
func (s *store) indexFor(q *query, field string) *index {
	for _, name := range q.index(field) {
		if x := s.indexes[name]; x != nil {
			return x
		}
	}
	return nil
}

// planBuiltin handles the two fields that every object has and that need no index.
func (s *store) planBuiltin(t term, p *plan) bool {
	if !builtinField(t.field) {
		return false
	}
	p.filters = append(p.filters, func(it *item) bool { return t.matches(builtinValue(t.field, it.key)) })
	return true
}

func builtinField(field string) bool {
	return field == "metadata.name" || field == "metadata.namespace"
}

// builtinValue returns the value of one of the built-in fields, which a key tells.
func builtinValue(field, key string) string {
	ns, name, found := strings.Cut(key, "/")
	if !found {
		ns, name = "", key
	}
	if field == "metadata.name" {
		return name
	}
	return ns
}

// matches reports whether an object with these values of the field fulfils the term.
func (t *term) matches(values ...string) bool {
	return slices.Contains(values, t.value) != t.not
}

// fulfils reports whether an object that is not in the store would be found by the query.
func (s *store) fulfils(q *query, key string, obj any) (bool, error) {
	if !strings.HasPrefix(key, q.prefix) || key <= q.after && q.after != "" {
		return false, nil
	}
	if q.selector != nil && !q.selector.Empty() && !matchesLabels(obj, q.selector) {
		return false, nil
	}
	for _, t := range q.terms {
		s.mu.RLock()
		x := s.indexFor(q, t.field)
		s.mu.RUnlock()
		if x == nil {
			if !builtinField(t.field) {
				return false, fmt.Errorf("no index on field %q", t.field)
			}
			if !t.matches(builtinValue(t.field, key)) {
				return false, nil
			}
			continue
		}
		values, err := x.valuesOf(obj)
		if err != nil {
			return false, err
		}
		if !t.matches(values...) {
			return false, nil
		}
	}
	return true, nil
}

// planLabels walks the postings of the best label term, if one beats the fields, and filters by the rest.
func (s *store) planLabels(q *query, p *plan) {
	if q.selector == nil || q.selector.Empty() {
		return
	}
	best := ""
	for key, r := range equalities(q.selector) {
		x := s.labels[key]
		if x == nil {
			continue
		}
		var postings []*order
		for v := range r.Values() {
			if o := x.postings[v]; o != nil {
				postings = append(postings, o)
			}
		}
		if p.offer(postings) {
			best = key
		}
	}
	if reqs, _ := q.selector.Requirements(); best != "" && len(reqs) == 1 {
		return // the walk is the answer
	}
	p.filters = append(p.filters, func(it *item) bool { return matchesLabels(it.obj, q.selector) })
}

// matchesLabels reports whether an object's labels match a selector.
func matchesLabels(obj any, sel labels.Selector) bool {
	m, err := meta.Accessor(obj)
	return err == nil && sel.Matches(labels.Set(m.GetLabels()))
}
