// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/fake"
)

// updateCases change one thing of a stored object each.
func updateCases() []Case {
	var cases []Case
	for _, f := range writeForms {
		for _, v := range updateVariants {
			cases = append(cases, Case{"update/" + f.name + "/" + v.name, v.needs, func(r *Run) {
				obj := f.make(r, "a", "x")
				_ = r.Create(obj, client.FieldOwner("case"))
				v.change(obj)
				_ = r.Update(obj, append([]client.UpdateOption{client.FieldOwner("case")}, v.opts...)...)
				_ = r.Get(f.make(r, "a", "x"))
			}})
		}
		cases = append(cases,
			Case{"update/" + f.name + "/absent", 0, func(r *Run) {
				obj := f.make(r, "a", "no")
				obj.SetResourceVersion("5")
				_ = r.Update(obj)
				_ = r.Update(f.make(r, "a", "no"))
			}},
			Case{"update/" + f.name + "/twice from one version", answersCreated, func(r *Run) {
				first := f.make(r, "a", "x")
				_ = r.Create(first, client.FieldOwner("case"))
				second := first.DeepCopyObject().(client.Object)
				changeContent(first)
				_ = r.Update(first, client.FieldOwner("case"))
				_ = r.Update(second, client.FieldOwner("case"))
			}},
			Case{"update/" + f.name + "/while terminating", answersCreated, func(r *Run) {
				obj := f.make(r, "a", "x")
				obj.SetFinalizers([]string{"example.com/f", "example.com/g"})
				r.Made(obj)
				r.Hide("metadata.managedFields")
				_ = r.Delete(obj)
				_ = r.Get(obj)
				obj.SetDeletionTimestamp(nil)
				obj.SetDeletionGracePeriodSeconds(nil)
				changeContent(obj)
				_ = r.Update(obj)
				obj.SetFinalizers([]string{"example.com/g"})
				_ = r.Update(obj)
				obj.SetFinalizers(nil)
				_ = r.Update(obj)
				_ = r.Get(obj)
			}},
			Case{"update/" + f.name + "/new finalizer while terminating", fake.Validation | answersCreated, func(r *Run) {
				obj := f.make(r, "a", "x")
				obj.SetFinalizers([]string{"example.com/f"})
				r.Made(obj)
				r.Hide("metadata.managedFields")
				_ = r.Delete(obj)
				_ = r.Get(obj)
				obj.SetFinalizers([]string{"example.com/f", "example.com/late"})
				_ = r.Update(obj)
				_ = r.Patch(obj, merge(`{"metadata":{"finalizers":null}}`))
			}},
		)
	}
	return cases
}

var updateVariants = []struct {
	name   string
	needs  fake.Behaviour
	change func(client.Object)
	opts   []client.UpdateOption
}{
	{"nothing", answersCreated, func(client.Object) {}, nil},
	{"labels", answersCreated, func(o client.Object) { o.SetLabels(map[string]string{"x": "y"}) }, nil},
	{"spec", answersCreated, changeContent, nil},
	{"old version", answersCreated, func(o client.Object) { changeContent(o); o.SetResourceVersion("1") }, nil},
	{"no such version", answersCreated, func(o client.Object) { changeContent(o); o.SetResourceVersion("text") }, nil},
	{"other UID", fake.Identity | answersCreated, func(o client.Object) { changeContent(o); o.SetUID("other") }, nil},
	{"no UID", answersCreated, func(o client.Object) { changeContent(o); o.SetUID("") }, nil},
	{"creationTimestamp", fake.Validation | answersCreated, func(o client.Object) { o.SetCreationTimestamp(metav1.NewTime(time.Unix(0, 0))) }, nil},
	{"no creationTimestamp", answersCreated, func(o client.Object) { changeContent(o); o.SetCreationTimestamp(metav1.Time{}) }, nil},
	{"deletionTimestamp", answersCreated, func(o client.Object) { o.SetDeletionTimestamp(ptr.To(metav1.NewTime(time.Unix(0, 0)))) }, nil},
	{"generation", answersCreated, func(o client.Object) { changeContent(o); o.SetGeneration(77) }, nil},
	{"selfLink", answersCreated, func(o client.Object) { changeContent(o); o.SetSelfLink("/x") }, nil},
	{"finalizers", answersCreated, func(o client.Object) { o.SetFinalizers([]string{"example.com/f"}) }, nil},
	{"bad label", fake.Validation | answersCreated, func(o client.Object) { o.SetLabels(map[string]string{"bad label!": "x"}) }, nil},
	{"managedFields cleared", answersCreated, func(o client.Object) { o.SetManagedFields([]metav1.ManagedFieldsEntry{{}}) }, nil},
	{"managedFields left out", answersCreated, func(o client.Object) { changeContent(o); o.SetManagedFields(nil) }, nil},
	{"dry run", answersCreated, changeContent, []client.UpdateOption{client.DryRunAll}},
	{"other owner", answersCreated, changeContent, []client.UpdateOption{client.FieldOwner("second")}},
}

// changeContent changes what an object is about.
func changeContent(o client.Object) {
	switch o := o.(type) {
	case *corev1.ConfigMap:
		o.Data["a"] += "1"
	case *unstructured.Unstructured:
		if o.GetKind() == WidgetKind.Kind {
			size, _, _ := unstructured.NestedInt64(o.Object, "spec", "size")
			_ = unstructured.SetNestedField(o.Object, size+1, "spec", "size")
			return
		}
		a, _, _ := unstructured.NestedString(o.Object, "data", "a")
		_ = unstructured.SetNestedField(o.Object, a+"1", "data", "a")
	}
}

// unversionedCases are FK-5: which kinds may be updated without a resourceVersion, and which are created by an update.
func unversionedCases() []Case {
	var cases []Case
	for _, name := range sortedKeys(unversionedKinds) {
		cases = append(cases,
			Case{"unversioned update/" + name, answersCreated, func(r *Run) {
				r.Hide("spec", "status", "metadata.managedFields", "metadata.labels", "metadata.annotations", "volumeBindingMode", "reclaimPolicy", "preemptionPolicy", "globalDefault", "ports", "template", "endpoints", "type")
				obj := unversionedKinds[name](r)
				r.Made(obj)
				fresh := obj.DeepCopyObject().(client.Object)
				fresh.SetResourceVersion("")
				fresh.SetAnnotations(map[string]string{"x": "y"})
				_ = r.Update(fresh)
				_ = r.Delete(obj, client.PropagationPolicy(metav1.DeletePropagationBackground))
			}},
			Case{"update of an absent object/" + name, answersCreated, func(r *Run) {
				r.Hide("spec", "status", "metadata.managedFields", "template", "endpoints", "ports", "metadata.labels", "metadata.annotations")
				obj := unversionedKinds[name](r)
				if r.Update(obj) == nil {
					_ = r.Delete(obj)
				}
			}},
		)
	}
	return cases
}

// unversionedKinds make the smallest object of each kind that a server takes.
var unversionedKinds = map[string]func(r *Run) client.Object{
	"ConfigMap":      func(r *Run) client.Object { return r.configMap("a", "x") },
	"Secret":         func(r *Run) client.Object { return &corev1.Secret{ObjectMeta: r.meta("a", "x")} },
	"ServiceAccount": func(r *Run) client.Object { return &corev1.ServiceAccount{ObjectMeta: r.meta("a", "x")} },
	"LimitRange":     func(r *Run) client.Object { return &corev1.LimitRange{ObjectMeta: r.meta("a", "x")} },
	"Endpoints":      func(r *Run) client.Object { return &corev1.Endpoints{ObjectMeta: r.meta("a", "x")} }, //nolint:staticcheck // the server still has it
	"Service": func(r *Run) client.Object {
		return &corev1.Service{ObjectMeta: r.meta("a", "x"), Spec: corev1.ServiceSpec{ClusterIP: "None", Selector: map[string]string{"a": "b"}}}
	},
	"PodTemplate": func(r *Run) client.Object {
		return &corev1.PodTemplate{ObjectMeta: r.meta("a", "x"), Template: template}
	},
	"ReplicaSet": func(r *Run) client.Object { return r.replicaSet("x", 0) },
	"Ingress": func(r *Run) client.Object {
		return &networkingv1.Ingress{ObjectMeta: r.meta("a", "x"), Spec: networkingv1.IngressSpec{DefaultBackend: backend}}
	},
	"NetworkPolicy": func(r *Run) client.Object { return &networkingv1.NetworkPolicy{ObjectMeta: r.meta("a", "x")} },
	"IngressClass": func(r *Run) client.Object {
		return &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: r.Name("x")}, Spec: networkingv1.IngressClassSpec{Controller: "example.com/c"}}
	},
	"StorageClass": func(r *Run) client.Object {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: r.Name("x")}, Provisioner: "example.com/p"}
	},
	"CSIDriver": func(r *Run) client.Object {
		return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: r.Name("x")}}
	},
	"PriorityClass": func(r *Run) client.Object {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: r.Name("x")}, Value: 5}
	},
	"CertificateSigningRequest": func(r *Run) client.Object {
		return &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: r.Name("x")}, Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: []byte(requestPEM), SignerName: "example.com/s", Usages: []certificatesv1.KeyUsage{"client auth"}}}
	},
	"EndpointSlice": func(r *Run) client.Object {
		return &discoveryv1.EndpointSlice{ObjectMeta: r.meta("a", "x"), AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{}}
	},
	"Role": func(r *Run) client.Object { return &rbacv1.Role{ObjectMeta: r.meta("a", "x")} },
	"ClusterRole": func(r *Run) client.Object {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: r.Name("x")}}
	},
	"RuntimeClass": func(r *Run) client.Object {
		return &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: r.Name("x")}, Handler: "h"}
	},
	"Job": func(r *Run) client.Object {
		return &batchv1.Job{ObjectMeta: r.meta("a", "x"), Spec: batchv1.JobSpec{Template: template}}
	},
	"Lease": func(r *Run) client.Object { return &coordinationv1.Lease{ObjectMeta: r.meta("a", "x")} },
	"PodDisruptionBudget": func(r *Run) client.Object {
		return &policyv1.PodDisruptionBudget{ObjectMeta: r.meta("a", "x")}
	},
	"Widget": func(r *Run) client.Object { return r.widget("a", "x") },
}

var template = corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
var backend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "s", Port: networkingv1.ServiceBackendPort{Number: 80}}}
