// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	core "k8s.io/api/core/v1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	scheduling "k8s.io/kubernetes/pkg/apis/scheduling/v1"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"

	"github.com/wherry-dev/wherry/test/apiserver/storage/file"
)

// seededHooks are kube-apiserver's start-up hooks whose objects are written before the server starts instead. Both
// wait a full second before they try at all.
var seededHooks = []string{rbacrest.PostStartHookName, schedulingrest.PostStartHookName}

// seeded is one kind of objects to be there from the first moment.
type seeded struct {
	resource schema.GroupResource
	objects  []runtime.Object
}

// seeds returns what kube-apiserver's start-up hooks would write, in the order of the kinds.
func (p *parts) seeds() []seeded {
	roles, bindings := seeded{resource: rbac("roles")}, seeded{resource: rbac("rolebindings")}
	for namespace, list := range bootstrappolicy.NamespaceRoles() {
		roles.add(namespace, pointers(list)...)
	}
	for namespace, list := range bootstrappolicy.NamespaceRoleBindings() {
		bindings.add(namespace, pointers(list)...)
	}
	clusterRoles, clusterBindings := seeded{resource: rbac("clusterroles")}, seeded{resource: rbac("clusterrolebindings")}
	clusterRoles.add("", pointers(bootstrappolicy.ClusterRoles())...)
	clusterRoles.add("", pointers(bootstrappolicy.ControllerRoles())...)
	clusterBindings.add("", pointers(bootstrappolicy.ClusterRoleBindings())...)
	clusterBindings.add("", pointers(bootstrappolicy.ControllerRoleBindings())...)
	priorities := seeded{resource: schema.GroupResource{Group: "scheduling.k8s.io", Resource: "priorityclasses"}}
	for _, c := range scheduling.SystemPriorityClasses() {
		c.Generation = 1
		priorities.add("", c)
	}
	namespaces := seeded{resource: schema.GroupResource{Resource: "namespaces"}}
	accounts := seeded{resource: schema.GroupResource{Resource: "serviceaccounts"}}
	for _, name := range p.flags.SystemNamespaces {
		namespaces.add("", &core.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{core.LabelMetadataName: name}},
			Spec:       core.NamespaceSpec{Finalizers: []core.FinalizerName{core.FinalizerKubernetes}},
			Status:     core.NamespaceStatus{Phase: core.NamespaceActive},
		})
		if !p.options.NoServiceAccounts {
			accounts.add(name, &core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
		}
	}
	return append([]seeded{namespaces, accounts, clusterRoles, clusterBindings, roles, bindings, priorities}, fairness()...)
}

// fairness returns the priority levels and flow schemas of request fairness. Their hook runs all the same and finds them
// there: it would make them one by one, each a request that its next one waits for.
func fairness() []seeded {
	levels := seeded{resource: schema.GroupResource{Group: flowcontrol.GroupName, Resource: "prioritylevelconfigurations"}}
	for _, l := range slices.Concat(bootstrap.MandatoryPriorityLevelConfigurations, bootstrap.SuggestedPriorityLevelConfigurations) {
		l = l.DeepCopy() // the list is everybody's
		l.Generation = 1
		levels.add("", l)
	}
	flows := seeded{resource: schema.GroupResource{Group: flowcontrol.GroupName, Resource: "flowschemas"}}
	for _, f := range slices.Concat(bootstrap.MandatoryFlowSchemas, bootstrap.SuggestedFlowSchemas) {
		f = f.DeepCopy()
		f.Generation = 1
		flows.add("", f)
	}
	return []seeded{levels, flows}
}

func rbac(resource string) schema.GroupResource {
	return schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: resource}
}

// pointers turns a list of objects into the objects.
func pointers[T any, P interface {
	*T
	runtime.Object
}](list []T) []runtime.Object {
	out := make([]runtime.Object, len(list))
	for i := range list {
		out[i] = P(&list[i])
	}
	return out
}

func (s *seeded) add(namespace string, objects ...runtime.Object) {
	for _, o := range objects {
		if m, err := meta.Accessor(o); err == nil && m.GetNamespace() == "" {
			m.SetNamespace(namespace)
		}
		s.objects = append(s.objects, o)
	}
}

// seed writes the objects that are not there yet, all in one transaction.
func (p *parts) seed(ctx context.Context, c *app.Config) error {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	var ops []file.Op
	for _, kind := range p.seeds() {
		if len(kind.objects) == 0 {
			continue
		}
		o, err := c.KubeAPIs.ControlPlane.Generic.RESTOptionsGetter.GetRESTOptions(kind.resource, kind.objects[0])
		if err != nil {
			return fmt.Errorf("find out how %s are stored: %w", kind.resource, err)
		}
		for _, object := range kind.objects {
			op, err := creation(ctx, o, object, now)
			if err != nil {
				return fmt.Errorf("encode one of the %s every cluster has: %w", kind.resource, err)
			}
			if kv, _ := p.store.Get(op.Key); kv == nil {
				ops = append(ops, op)
			}
		}
	}
	if len(ops) == 0 {
		return nil
	}
	done, err := p.store.Txn(ctx, ops...)
	if err != nil {
		return fmt.Errorf("write the objects every cluster has: %w", err)
	}
	if !done.Applied {
		return fmt.Errorf("write the objects every cluster has: %s appeared while the server started", done.Current.Key)
	}
	return nil
}

// creation returns the write that creates an object as the API server would have.
func creation(ctx context.Context, o generic.RESTOptions, object runtime.Object, now metav1.Time) (file.Op, error) {
	m, err := meta.Accessor(object)
	if err != nil {
		return file.Op{}, err
	}
	legacyscheme.Scheme.Default(object)
	m.SetUID(uuid.NewUUID())
	m.SetCreationTimestamp(now)
	key := path.Join("/", o.StorageConfig.Prefix, o.ResourcePrefix, m.GetNamespace(), m.GetName())
	data, err := runtime.Encode(o.StorageConfig.Codec, object)
	if err != nil {
		return file.Op{}, err
	}
	if t := o.StorageConfig.Transformer; t != nil {
		if data, err = t.TransformToStorage(ctx, data, value.DefaultContext(key)); err != nil {
			return file.Op{}, err
		}
	}
	return file.Op{Key: key, Value: data}, nil
}
