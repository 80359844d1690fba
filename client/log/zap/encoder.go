// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package zap

import (
	"fmt"
	"reflect"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

func newJSONEncoder(opts ...EncoderConfigOption) zapcore.Encoder {
	return zapcore.NewJSONEncoder(encoderConfig(zap.NewProductionEncoderConfig(), opts))
}

func newConsoleEncoder(opts ...EncoderConfigOption) zapcore.Encoder {
	return zapcore.NewConsoleEncoder(encoderConfig(zap.NewDevelopmentEncoderConfig(), opts))
}

func encoderConfig(c zapcore.EncoderConfig, opts []EncoderConfigOption) zapcore.EncoderConfig {
	for _, opt := range opts {
		opt(&c)
	}
	return c
}

// KubeAwareEncoder writes Kubernetes objects by their names instead of in full, and keys as an object with namespace
// and name.
type KubeAwareEncoder struct {
	// Encoder does the writing.
	zapcore.Encoder

	// Verbose leaves everything to Encoder.
	Verbose bool
}

var _ zapcore.Encoder = &KubeAwareEncoder{}

// Clone gives an independent copy.
func (k *KubeAwareEncoder) Clone() zapcore.Encoder {
	return &KubeAwareEncoder{Encoder: k.Encoder.Clone(), Verbose: k.Verbose}
}

// EncodeEntry writes one line. It leaves fields as it found them.
func (k *KubeAwareEncoder) EncodeEntry(entry zapcore.Entry, fields []zapcore.Field) (*buffer.Buffer, error) {
	if !k.Verbose {
		fields = shortFields(fields)
	}
	return k.Encoder.EncodeEntry(entry, fields)
}

// shortCore does for values that are given ahead of a line (With) what KubeAwareEncoder does for values given with it:
// by the time such a value reaches an encoder it is only a string.
type shortCore struct{ zapcore.Core }

func (c shortCore) With(fields []zapcore.Field) zapcore.Core {
	return shortCore{c.Core.With(shortFields(fields))}
}

// shortFields gives fields with objects and keys in their short form.
func shortFields(fields []zapcore.Field) []zapcore.Field {
	var changed []zapcore.Field
	for i, f := range fields {
		if f.Type != zapcore.ReflectType && f.Type != zapcore.StringerType {
			continue
		}
		short := shorten(f.Interface)
		if short == nil {
			continue
		}
		if changed == nil {
			// zap hands one slice to every core of a tee, so it is not ours to write to.
			changed = slices.Clone(fields)
		}
		changed[i] = zap.Object(f.Key, short)
	}
	if changed != nil {
		return changed
	}
	return fields
}

// shorten gives the short form of v, or nil if v is written as it is.
func shorten(v any) zapcore.ObjectMarshaler {
	switch v := v.(type) {
	case runtime.Object:
		return objectName{v}
	case types.NamespacedName:
		return keyName(v)
	case *types.NamespacedName:
		if v != nil {
			return keyName(*v)
		}
	}
	return nil
}

// objectName writes which object it is.
type objectName struct{ runtime.Object }

func (o objectName) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	if v := reflect.ValueOf(o.Object); v.Kind() == reflect.Pointer && v.IsNil() {
		enc.AddString("nil", fmt.Sprintf("%T", o.Object))
		return nil
	}
	if gvk := o.GetObjectKind().GroupVersionKind(); gvk.Version != "" {
		enc.AddString("apiVersion", gvk.GroupVersion().String())
		enc.AddString("kind", gvk.Kind)
	} else {
		// Objects read by typed clients carry no kind; the Go type is the next best thing to say.
		enc.AddString("type", fmt.Sprintf("%T", o.Object))
	}
	m, err := meta.Accessor(o.Object)
	if err != nil {
		return nil // a list, or something else without a name: its kind is all there is to say
	}
	return keyName{Namespace: m.GetNamespace(), Name: m.GetName()}.MarshalLogObject(enc)
}

// keyName writes a key.
type keyName types.NamespacedName

func (n keyName) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	if n.Namespace != "" {
		enc.AddString("namespace", n.Namespace)
	}
	enc.AddString("name", n.Name)
	return nil
}
