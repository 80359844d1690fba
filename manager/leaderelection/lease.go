// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
)

// eventRecorder is the part of a recorder that a lock needs.
type eventRecorder interface {
	Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any)
}

// leaseLock is a Lock in a Lease object.
type leaseLock struct {
	client          rest.Interface
	namespace, name string
	identity        string
	labels          map[string]string
	timeout         time.Duration // of one request
	recorder        eventRecorder // may be nil

	mu sync.Mutex
	// lease is the object as last read or written: its resourceVersion makes Update fail after a foreign write, and what we
	// do not know of it (labels, annotations, owners) goes back unchanged.
	lease *coordinationv1.Lease
}

var _ Lock = (*leaseLock)(nil)

// leaseCodecs knows Leases and the meta types only: nothing else is linked for their sake.
var leaseCodecs = sync.OnceValue(func() serializer.CodecFactory {
	s := runtime.NewScheme()
	utilruntime.Must(coordinationv1.AddToScheme(s))
	return serializer.NewCodecFactory(s)
})

// newLeaseClient makes the REST client of a lock. It goes to the server by itself, past any fence around config's owner,
// since a lease must be released after the fence is shut.
func newLeaseClient(config *rest.Config) (rest.Interface, error) {
	c := rest.CopyConfig(config)
	gv := coordinationv1.SchemeGroupVersion
	c.GroupVersion, c.APIPath = &gv, "/apis"
	// Renewals are few and paced by the elector; waiting behind the operator's own requests could cost the lease.
	c.RateLimiter, c.QPS = nil, -1
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	c.NegotiatedSerializer = leaseCodecs().WithoutConversion()
	return rest.RESTClientFor(c)
}

func (l *leaseLock) Identity() string { return l.identity }
func (l *leaseLock) Describe() string { return l.namespace + "/" + l.name }

func (l *leaseLock) Get(ctx context.Context) (*Record, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	lease := &coordinationv1.Lease{}
	err := l.client.Get().Namespace(l.namespace).Resource("leases").Name(l.name).Do(ctx).Into(lease)
	if err != nil {
		return nil, err
	}
	l.keep(lease)
	return recordOf(&lease.Spec), nil
}

func (l *leaseLock) Create(ctx context.Context, record Record) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: l.name, Labels: maps.Clone(l.labels)}}
	record.into(&lease.Spec)
	return l.write(ctx, l.client.Post().Namespace(l.namespace).Resource("leases"), lease)
}

func (l *leaseLock) Update(ctx context.Context, record Record) error {
	l.mu.Lock()
	lease := l.lease.DeepCopy()
	l.mu.Unlock()
	if lease == nil {
		return errors.New("lease updated before it was read or created")
	}
	record.into(&lease.Spec)
	if lease.Labels == nil && len(l.labels) > 0 {
		lease.Labels = map[string]string{}
	}
	maps.Copy(lease.Labels, l.labels)
	return l.write(ctx, l.client.Put().Namespace(l.namespace).Resource("leases").Name(l.name), lease)
}

func (l *leaseLock) write(ctx context.Context, req *rest.Request, lease *coordinationv1.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	answer := &coordinationv1.Lease{}
	if err := req.Body(lease).Do(ctx).Into(answer); err != nil {
		return err
	}
	l.keep(answer)
	return nil
}

func (l *leaseLock) keep(lease *coordinationv1.Lease) {
	l.mu.Lock()
	l.lease = lease
	l.mu.Unlock()
}

func (l *leaseLock) RecordEvent(event string) {
	l.mu.Lock()
	lease := l.lease
	l.mu.Unlock()
	if l.recorder == nil || lease == nil {
		return
	}
	subject := &coordinationv1.Lease{ObjectMeta: *lease.ObjectMeta.DeepCopy()}
	subject.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	l.recorder.Eventf(subject, corev1.EventTypeNormal, "LeaderElection", "%s", fmt.Sprintf("%s %s", l.identity, event))
}

func recordOf(spec *coordinationv1.LeaseSpec) *Record {
	r := &Record{
		HolderIdentity:       value(spec.HolderIdentity),
		LeaseDurationSeconds: int(value(spec.LeaseDurationSeconds)),
		LeaderTransitions:    int(value(spec.LeaseTransitions)),
		Strategy:             value(spec.Strategy),
		PreferredHolder:      value(spec.PreferredHolder),
		AcquireTime:          value(spec.AcquireTime).Time,
		RenewTime:            value(spec.RenewTime).Time,
	}
	return r
}

func (r Record) into(spec *coordinationv1.LeaseSpec) {
	spec.HolderIdentity = &r.HolderIdentity
	spec.LeaseDurationSeconds = new(int32(r.LeaseDurationSeconds))
	spec.LeaseTransitions = new(int32(r.LeaderTransitions))
	spec.AcquireTime = &metav1.MicroTime{Time: r.AcquireTime}
	spec.RenewTime = &metav1.MicroTime{Time: r.RenewTime}
	spec.Strategy, spec.PreferredHolder = nil, nil
	if r.Strategy != "" {
		spec.Strategy = &r.Strategy
	}
	if r.PreferredHolder != "" {
		spec.PreferredHolder = &r.PreferredHolder
	}
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
