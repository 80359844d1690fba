// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Registry holds the converters of a process, one for each kind. Safe for concurrent use.
type Registry interface {
	// RegisterConverter makes converter the one of a kind, in all its versions. It fails for a kind that has one, and for a nil
	// converter.
	RegisterConverter(gk schema.GroupKind, converter Converter) error

	// GetConverter finds the converter of a kind.
	GetConverter(gk schema.GroupKind) (Converter, bool)
}

// NewRegistry returns an empty registry.
func NewRegistry() Registry { return &registry{converters: map[schema.GroupKind]Converter{}} }

type registry struct {
	mu         sync.RWMutex
	converters map[schema.GroupKind]Converter // guarded by mu
}

func (r *registry) RegisterConverter(gk schema.GroupKind, converter Converter) error {
	if converter == nil {
		return fmt.Errorf("register a converter for %s: it is nil", gk)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.converters[gk]; taken {
		return fmt.Errorf("register a converter for %s: there is one already", gk)
	}
	r.converters[gk] = converter
	return nil
}

func (r *registry) GetConverter(gk schema.GroupKind) (Converter, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	converter, ok := r.converters[gk]
	return converter, ok
}
