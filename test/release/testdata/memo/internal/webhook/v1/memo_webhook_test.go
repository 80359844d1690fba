package v1

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	notesv1 "example.org/memo/api/v1"
)

func memo(name, text string) *notesv1.Memo {
	return &notesv1.Memo{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       notesv1.MemoSpec{Text: text},
	}
}

var _ = Describe("Memo Webhook", func() {
	It("gives a memo a title", func() {
		Expect(k8sClient.Create(ctx, memo("untitled", "hello"))).To(Succeed())
		var stored notesv1.Memo
		Expect(k8sClient.Get(ctx, client.ObjectKey{Namespace: "default", Name: "untitled"}, &stored)).To(Succeed())
		Expect(stored.Spec.Title).To(Equal("untitled"))
	})

	It("refuses a long one on create", func() {
		err := k8sClient.Create(ctx, memo("novel", strings.Repeat("x", longest+1)))
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "got %v", err)
	})

	It("refuses a long one on update", func() {
		short := memo("short", "hello")
		Expect(k8sClient.Create(ctx, short)).To(Succeed())
		short.Spec.Text = strings.Repeat("x", longest+1)
		Expect(apierrors.IsInvalid(k8sClient.Update(ctx, short))).To(BeTrue())
	})
})
