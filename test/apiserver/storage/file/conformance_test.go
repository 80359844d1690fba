// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/apitesting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
)

var (
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme)
)

func init() {
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	utilruntime.Must(example.AddToScheme(scheme))
	utilruntime.Must(examplev1.AddToScheme(scheme))
}

const testPrefix = "test!"

// bench is a Storage of pods with what the suite wants to do to it.
type bench struct {
	*Storage
	ctx         context.Context
	codec       *failingCodec
	transformer *failingTransformer
	prefix      *storagetesting.PrefixTransformer
}

func newBench(t testing.TB, o Options) *bench {
	o.ProgressPeriod = 200 * time.Millisecond
	return newBenchOn(t, openTest(t, o))
}

func newBenchOn(t testing.TB, s *Store) *bench {
	b := &bench{
		ctx:    context.Background(),
		codec:  &failingCodec{Codec: apitesting.TestCodec(codecs, examplev1.SchemeGroupVersion)},
		prefix: storagetesting.NewPrefixTransformer([]byte(testPrefix), false),
	}
	b.transformer = &failingTransformer{Transformer: b.prefix}
	var err error
	if b.Storage, err = NewStorage(s, StorageOptions{
		Codec: b.codec, Transformer: b.transformer, ResourcePrefix: "/pods/",
		GroupResource: schema.GroupResource{Resource: "pods"},
		NewFunc:       func() runtime.Object { return &example.Pod{} },
	}); err != nil {
		t.Fatal(err)
	}
	return b
}

type failingCodec struct {
	runtime.Codec
	fail atomic.Bool
}

var errMade = errors.New("made to fail")

func (c *failingCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if c.fail.Load() {
		return nil, nil, errMade
	}
	return c.Codec.Decode(data, defaults, into)
}

type failingTransformer struct {
	value.Transformer
	fail atomic.Bool
}

func (f *failingTransformer) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	if f.fail.Load() {
		return nil, false, errMade
	}
	return f.Transformer.TransformFromStorage(ctx, data, dataCtx)
}

// UpdatePrefixTransformer implements storagetesting.InterfaceWithPrefixTransformer.
func (b *bench) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	changed := *b.prefix
	b.setTransformer(modify(&changed))
	return func() { b.setTransformer(b.prefix) }
}

// UpdateTransformer implements storagetesting.InterfaceWithTransformerOverride.
func (b *bench) UpdateTransformer(modify storagetesting.TransformerModifier) func() {
	was := b.way.Load().transformer
	b.setTransformer(modify(was))
	return func() { b.setTransformer(was) }
}

// increase makes one write that no resource sees.
func (b *bench) increase(ctx context.Context, t *testing.T) int64 {
	return put(t, b.store, "/elsewhere", "ok", AnyRevision)
}

// compact forgets what came before, and takes one revision as etcd's compactor does.
func (b *bench) compact(ctx context.Context, t *testing.T, resourceVersion string) {
	rev, err := b.versioner.ParseResourceVersion(resourceVersion)
	if err == nil {
		put(t, b.store, "/compacted", resourceVersion, AnyRevision)
		err = b.store.Compact(int64(rev))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// stored checks what is in the store itself.
func (b *bench) stored(ctx context.Context, t *testing.T, key string) {
	kv, _ := b.store.Get(key)
	if kv == nil {
		t.Fatalf("%s is not in the store", key)
	}
	data, ok := strings.CutPrefix(string(kv.Value), testPrefix)
	if !ok {
		t.Fatalf("%s was not transformed", key)
	}
	obj, err := runtime.Decode(b.codec, []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	if pod := obj.(*example.Pod); pod.ResourceVersion != "" || pod.SelfLink != "" {
		t.Errorf("stored with resource version %q and self link %q", pod.ResourceVersion, pod.SelfLink)
	}
}

// reads checks that a list reads an object once if objects are not shared, and at most once if they are.
func (b *bench) reads(t *testing.T, _, estimate uint64) {
	reads := b.prefix.GetReadsAndReset()
	if reads > estimate || !b.share && reads != estimate {
		t.Errorf("%d values read, want %d", reads, estimate)
	}
}

// unsafeDeletion turns the gate on. It has to be on when the storage is made.
func unsafeDeletion(t *testing.T, o Options) *bench {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.AllowUnsafeMalformedObjectDeletion, true)
	return newBench(t, o)
}

var errFlipped = &unreadableError{step: errTransform, cause: errors.New("bits flipped")}

// suite says how each function of Kubernetes' own storage tests is run against Storage. Benchmarks are run elsewhere.
var suite = map[string]func(*testing.T, Options){
	"RunTestCreate": func(t *testing.T, o Options) {
		b := newBench(t, o)
		storagetesting.RunTestCreate(b.ctx, t, b, b.stored)
	},
	"RunTestCreateWithTTL":                           plain(storagetesting.RunTestCreateWithTTL),
	"RunTestCreateWithKeyExist":                      plain(storagetesting.RunTestCreateWithKeyExist),
	"RunTestGet":                                     plain(storagetesting.RunTestGet),
	"RunTestUnconditionalDelete":                     plain(storagetesting.RunTestUnconditionalDelete),
	"RunTestConditionalDelete":                       plain(storagetesting.RunTestConditionalDelete),
	"RunTestDeleteWithSuggestion":                    plain(storagetesting.RunTestDeleteWithSuggestion),
	"RunTestDeleteWithSuggestionAndConflict":         plain(storagetesting.RunTestDeleteWithSuggestionAndConflict),
	"RunTestDeleteWithConflict":                      plain(storagetesting.RunTestDeleteWithConflict),
	"RunTestDeleteWithSuggestionOfDeletedObject":     plain(storagetesting.RunTestDeleteWithSuggestionOfDeletedObject),
	"RunTestValidateDeletionWithSuggestion":          plain(storagetesting.RunTestValidateDeletionWithSuggestion),
	"RunTestValidateDeletionWithOnlySuggestionValid": plain(storagetesting.RunTestValidateDeletionWithOnlySuggestionValid),
	"RunTestPreconditionalDeleteWithSuggestion":      plain(storagetesting.RunTestPreconditionalDeleteWithSuggestion),
	"RunTestPreconditionalDeleteWithOnlySuggestionPass": plain(
		storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass),
	"RunTestList": func(t *testing.T, o Options) {
		b := newBench(t, o)
		storagetesting.RunTestList(b.ctx, t, b, b.compact, false, nil)
	},
	"RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError": func(t *testing.T, o Options) {
		b := unsafeDeletion(t, o)
		storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(b.ctx, t, b, b.codec.fail.Store)
	},
	"RunTestDeleteExpectedTransformOrDecodeError": func(t *testing.T, o Options) {
		b := unsafeDeletion(t, o)
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(b.ctx, t, b, b.codec.fail.Store)
		b = newBench(t, o)
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(b.ctx, t, b, b.transformer.fail.Store)
	},
	"RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError": func(t *testing.T, o Options) {
		b := unsafeDeletion(t, o)
		storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(b.ctx, t, b)
	},
	"RunTestConsistentList": func(t *testing.T, o Options) {
		b := newBench(t, o)
		storagetesting.RunTestConsistentList(b.ctx, t, b, b.increase, false, true, false)
	},
	"RunTestGetListNonRecursive": func(t *testing.T, o Options) {
		b := newBench(t, o)
		storagetesting.RunTestGetListNonRecursive(b.ctx, t, b.increase, b)
	},
	"RunTestGetListRecursivePrefix": plain(storagetesting.RunTestGetListRecursivePrefix),
	"RunTestGetListWithErrorAggregation": func(t *testing.T, o Options) {
		b := unsafeDeletion(t, o)
		storagetesting.RunTestGetListWithErrorAggregation(b.ctx, t, b, errFlipped)
	},
	"RunTestGetListWithoutErrorAggregation": func(t *testing.T, o Options) {
		featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.AllowUnsafeMalformedObjectDeletion, false)
		b := newBench(t, o)
		storagetesting.RunTestGetListWithoutErrorAggregation(b.ctx, t, b, errFlipped)
	},
	"RunTestListContinuation": func(t *testing.T, o Options) {
		b := newBench(t, o)
		storagetesting.RunTestListContinuation(b.ctx, t, b, b.reads)
	},
	"RunTestListPaginationRareObject": func(t *testing.T, o Options) {
		b := newBench(t, o)
		storagetesting.RunTestListPaginationRareObject(b.ctx, t, b, b.reads)
	},
	"RunTestListContinuationWithFilter": func(t *testing.T, o Options) {
		b := newBench(t, o)
		storagetesting.RunTestListContinuationWithFilter(b.ctx, t, b, b.reads)
	},
	"RunTestListInconsistentContinuation": func(t *testing.T, o Options) {
		b := newBench(t, o)
		storagetesting.RunTestListInconsistentContinuation(b.ctx, t, b, b.compact)
	},
	"RunTestListResourceVersionMatch": func(t *testing.T, o Options) {
		b := newBench(t, o)
		storagetesting.RunTestListResourceVersionMatch(b.ctx, t, b)
	},
	"RunTestGuaranteedUpdate": func(t *testing.T, o Options) {
		b := newBench(t, o)
		storagetesting.RunTestGuaranteedUpdate(b.ctx, t, b, b.stored)
	},
	"RunTestGuaranteedUpdateWithTTL": plain(storagetesting.RunTestGuaranteedUpdateWithTTL),
	"RunTestGuaranteedUpdateChecksStoredData": func(t *testing.T, o Options) {
		b := newBench(t, o)
		storagetesting.RunTestGuaranteedUpdateChecksStoredData(b.ctx, t, b)
	},
	"RunTestGuaranteedUpdateWithConflict":              plain(storagetesting.RunTestGuaranteedUpdateWithConflict),
	"RunTestGuaranteedUpdateWithSuggestionAndConflict": plain(storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict),
	"RunTestTransformationFailure": func(t *testing.T, o Options) {
		b := newBench(t, o)
		storagetesting.RunTestTransformationFailure(b.ctx, t, b)
	},
	"RunTestStats": func(t *testing.T, o Options) {
		b := newBench(t, o)
		storagetesting.RunTestStats(b.ctx, t, b, b.codec, b.prefix, true)
	},
	"RunTestListPaging":          plain(storagetesting.RunTestListPaging),
	"RunTestNamespaceScopedList": plain(storagetesting.RunTestNamespaceScopedList),
	"RunTestCompactRevision": func(t *testing.T, o Options) {
		b := newBench(t, o)
		storagetesting.RunTestCompactRevision(b.ctx, t, b, b.increase, b.compact)
	},
	"RunTestKeySchema": plain(storagetesting.RunTestKeySchema),

	"RunTestWatch": plain(storagetesting.RunTestWatch),
	"RunTestWatchFromZero": func(t *testing.T, o Options) {
		b := newBench(t, o)
		storagetesting.RunTestWatchFromZero(b.ctx, t, b, b.compact)
	},
	"RunTestDeleteTriggerWatch":   plain(storagetesting.RunTestDeleteTriggerWatch),
	"RunTestWatchFromNonZero":     plain(storagetesting.RunTestWatchFromNonZero),
	"RunTestDelayedWatchDelivery": plain(storagetesting.RunTestDelayedWatchDelivery),
	"RunTestWatchContextCancel":   plain(storagetesting.RunTestWatchContextCancel),
	"RunTestWatcherTimeout":       plain(storagetesting.RunTestWatcherTimeout),
	"RunTestClusterScopedWatch":   plain(storagetesting.RunTestClusterScopedWatch),
	"RunTestNamespaceScopedWatch": plain(storagetesting.RunTestNamespaceScopedWatch),
	"RunWatchListMatchSingle":     plain(storagetesting.RunWatchListMatchSingle),
	"RunWatchSemantics":           plain(storagetesting.RunWatchSemantics),
	"RunTestWatchError":           withBench(func(b *bench, t *testing.T) { storagetesting.RunTestWatchError(b.ctx, t, b) }),
	"RunTestWatchWithUnsafeDelete": func(t *testing.T, o Options) {
		b := unsafeDeletion(t, o)
		storagetesting.RunTestWatchWithUnsafeDelete(b.ctx, t, b, errFlipped)
	},
	"RunTestWatchDeleteEventObjectHaveLatestRV": plain(storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV),
	"RunTestWatchInitializationSignal":          plain(storagetesting.RunTestWatchInitializationSignal),
	"RunOptionalTestProgressNotify": withBench(func(b *bench, t *testing.T) {
		storagetesting.RunOptionalTestProgressNotify(b.ctx, t, b, b.increase)
	}),
	"RunTestWatchDispatchBookmarkEvents": withBench(func(b *bench, t *testing.T) {
		storagetesting.RunTestWatchDispatchBookmarkEvents(b.ctx, t, b, true)
	}),
	"RunTestOptionalWatchBookmarksWithCorrectResourceVersion": plain(storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion),
	"RunSendInitialEventsBackwardCompatibility":               plain(storagetesting.RunSendInitialEventsBackwardCompatibility),
	"RunWatchSemanticInitialEventsExtended":                   plain(storagetesting.RunWatchSemanticInitialEventsExtended),
	"RunWatchErrorIsBlockingFurtherEvents": withBench(func(b *bench, t *testing.T) {
		storagetesting.RunWatchErrorIsBlockingFurtherEvents(b.ctx, t, b)
	}),
}

// skipped names the functions that cannot be run, with the reason. There are none.
var skipped = map[string]string{}

// benchmarks are the functions that bench_test.go runs.
var benchmarks = []string{"RunBenchmarkStoreList", "RunBenchmarkStoreStats", "RunBenchmarkWriteThroughput"}

func plain(run func(context.Context, *testing.T, storage.Interface)) func(*testing.T, Options) {
	return withBench(func(b *bench, t *testing.T) { run(b.ctx, t, b) })
}

func withBench(run func(*bench, *testing.T)) func(*testing.T, Options) {
	return func(t *testing.T, o Options) { run(newBench(t, o), t) }
}

func TestConformance(t *testing.T) {
	for _, sharing := range []bool{true, false} {
		for name, run := range suite {
			t.Run(fmt.Sprintf("sharing=%v/%s", sharing, strings.TrimPrefix(name, "Run")), func(t *testing.T) {
				if why, ok := skipped[name]; ok {
					t.Skip(why)
				}
				run(t, Options{Mode: Memory, NoSharing: !sharing})
			})
		}
	}
	t.Run("durable/TestList", func(t *testing.T) { suite["RunTestList"](t, Options{Dir: t.TempDir()}) })
}

// TestConformanceIsComplete reads the package of Kubernetes' storage tests, so that a new one cannot be missed.
func TestConformanceIsComplete(t *testing.T) {
	at, _ := goruntime.FuncForPC(reflect.ValueOf(storagetesting.RunTestCreate).Pointer()).FileLine(
		reflect.ValueOf(storagetesting.RunTestCreate).Pointer())
	files, err := filepath.Glob(filepath.Join(filepath.Dir(at), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the sources of the storage tests are not at %s: %v", at, err)
	}
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Run") {
				names = append(names, fn.Name.Name)
			}
		}
	}
	if len(names) < 60 {
		t.Errorf("only %d functions found", len(names))
	}
	for _, name := range names {
		if suite[name] == nil && !slices.Contains(benchmarks, name) {
			t.Errorf("%s is not run", name)
		}
	}
	for name := range suite {
		if !slices.Contains(names, name) {
			t.Errorf("%s no longer exists", name)
		}
	}
	if len(skipped) > 3 {
		t.Errorf("%d functions are skipped", len(skipped))
	}
	t.Logf("%d functions, %d run as tests, %d as benchmarks, %d skipped", len(names), len(suite)-len(skipped), len(benchmarks), len(skipped))
}
