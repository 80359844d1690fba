package controller

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	notesv1 "example.org/memo/api/v1"
)

const timeout = time.Minute

var _ = Describe("Memo controller", func() {
	key := types.NamespacedName{Namespace: "default", Name: "groceries"}

	BeforeEach(func() {
		memo := &notesv1.Memo{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			Spec:       notesv1.MemoSpec{Text: "bread, milk", Title: "Groceries"},
		}
		Expect(k8sClient.Create(ctx, memo)).To(Succeed())
	})

	AfterEach(func() {
		memo := &notesv1.Memo{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		Expect(client.IgnoreNotFound(k8sClient.Delete(ctx, memo))).To(Succeed())
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		Expect(client.IgnoreNotFound(k8sClient.Delete(ctx, cm))).To(Succeed())
		Eventually(func() bool {
			return errors.IsNotFound(k8sClient.Get(ctx, key, &notesv1.Memo{}))
		}).WithTimeout(timeout).Should(BeTrue())
	})

	It("writes the memo down and says so", func() {
		Eventually(func(g Gomega) {
			var cm corev1.ConfigMap
			g.Expect(k8sClient.Get(ctx, key, &cm)).To(Succeed())
			g.Expect(cm.Data).To(HaveKeyWithValue("text", "bread, milk"))
			g.Expect(metav1.IsControlledBy(&cm, mustMemo(g, key))).To(BeTrue())
			g.Expect(meta.IsStatusConditionTrue(mustMemo(g, key).Status.Conditions, "Ready")).To(BeTrue())
		}).WithTimeout(timeout).Should(Succeed())
	})

	It("restores a ConfigMap that somebody deleted", func() {
		var cm corev1.ConfigMap
		Eventually(func() error { return k8sClient.Get(ctx, key, &cm) }).WithTimeout(timeout).Should(Succeed())
		uid := cm.UID
		Expect(k8sClient.Delete(ctx, &cm)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(k8sClient.Get(ctx, key, &cm)).To(Succeed())
			g.Expect(cm.UID).NotTo(Equal(uid))
		}).WithTimeout(timeout).Should(Succeed())
	})

	It("reconciles by hand, as a unit test would", func() {
		r := &MemoReconciler{Client: k8sClient, Scheme: k8sClient.Scheme()}
		Eventually(func() error { // the controller may write at the same moment
			_, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: key})
			return err
		}).WithTimeout(timeout).Should(Succeed())
	})
})

func mustMemo(g Gomega, key types.NamespacedName) *notesv1.Memo {
	memo := &notesv1.Memo{}
	g.Expect(k8sClient.Get(ctx, key, memo)).To(Succeed())
	return memo
}
