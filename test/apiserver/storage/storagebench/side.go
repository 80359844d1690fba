// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build etcd

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	etcdkubernetes "go.etcd.io/etcd/client/v3/kubernetes"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/apitesting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"

	"github.com/wherry-dev/wherry/test/apiserver/storage/file"
)

// side is one of the two storages that are compared.
type side struct {
	name    string
	storage storage.Interface
	close   func()
	syncs   func() float64 // fdatasyncs so far
}

var (
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme)
)

func init() {
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	utilruntime.Must(example.AddToScheme(scheme))
	utilruntime.Must(examplev1.AddToScheme(scheme))
}

func codec() runtime.Codec { return apitesting.TestCodec(codecs, examplev1.SchemeGroupVersion) }

var pods = schema.GroupResource{Resource: "pods"}

// ours opens a store in a fresh folder.
func ours(mode file.Mode) (*side, error) {
	var dir string
	if mode != file.Memory {
		var err error
		if dir, err = os.MkdirTemp("", "storagebench-"); err != nil {
			return nil, err
		}
	}
	s, err := oursIn(dir, mode)
	if err != nil {
		return nil, err
	}
	end := s.close
	s.close = func() { end(); os.RemoveAll(dir) }
	return s, nil
}

func oursIn(dir string, mode file.Mode) (*side, error) {
	disk := &countingFS{FS: file.OS()}
	s, err := file.Open(file.Options{Dir: dir, Mode: mode, FS: disk})
	if err != nil {
		return nil, err
	}
	st, err := file.NewStorage(s, file.StorageOptions{
		Codec: codec(), ResourcePrefix: "/pods/", GroupResource: pods,
		NewFunc: func() runtime.Object { return &example.Pod{} },
	})
	if err != nil {
		return nil, err
	}
	return &side{name: mode.String(), storage: st, close: func() { s.Close() }, syncs: func() float64 { return float64(disk.syncs.Load()) }}, nil
}

// countingFS counts the syncs of files.
type countingFS struct {
	file.FS
	syncs atomic.Int64
}

func (c *countingFS) Create(name string) (file.File, error) {
	f, err := c.FS.Create(name)
	return countingFile{f, &c.syncs}, err
}

func (c *countingFS) Open(name string, write bool) (file.File, error) {
	f, err := c.FS.Open(name, write)
	if err != nil {
		return nil, err
	}
	return countingFile{f, &c.syncs}, nil
}

type countingFile struct {
	file.File
	syncs *atomic.Int64
}

func (c countingFile) Sync() error {
	c.syncs.Add(1)
	return c.File.Sync()
}

// etcd starts an etcd in this process and Kubernetes' etcd3 storage on it.
func etcd(fsync bool) (*side, error) {
	dir, err := os.MkdirTemp("", "storagebench-etcd-")
	if err != nil {
		return nil, err
	}
	cfg := embed.NewConfig()
	cfg.Dir, cfg.UnsafeNoFsync = dir, !fsync
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	client, peer, err := twoPorts()
	if err != nil {
		return nil, err
	}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, err
	}
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(time.Minute):
		e.Close()
		return nil, errors.New("etcd does not get ready")
	}
	c, err := etcdkubernetes.New(clientv3.Config{Endpoints: []string{client.String()}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	versioner := storage.APIObjectVersioner{}
	st, err := etcd3.New(c, nil, codec(), func() runtime.Object { return &example.Pod{} },
		func() runtime.Object { return &example.PodList{} }, "", "/pods/", pods, identity.NewEncryptCheckTransformer(),
		etcd3.NewDefaultLeaseManagerConfig(), etcd3.NewDefaultDecoder(codec(), versioner), versioner)
	if err != nil {
		return nil, err
	}
	return &side{name: "etcd3", storage: st, syncs: etcdSyncs, close: func() {
		st.Close()
		c.Close()
		e.Close()
		os.RemoveAll(dir)
	}}, nil
}

func twoPorts() (client, peer url.URL, err error) {
	var urls []url.URL
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return client, peer, err
		}
		defer l.Close()
		urls = append(urls, url.URL{Scheme: "http", Host: l.Addr().String()})
	}
	return urls[0], urls[1], nil
}

// etcdSyncs reads etcd's own count: one fdatasync per write-ahead-log sync and two per commit of its database.
func etcdSyncs() float64 {
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		return 0
	}
	var n float64
	for _, f := range families {
		switch f.GetName() {
		case "etcd_disk_wal_fsync_duration_seconds":
			n += float64(f.GetMetric()[0].GetHistogram().GetSampleCount())
		case "etcd_disk_backend_commit_duration_seconds":
			n += 2 * float64(f.GetMetric()[0].GetHistogram().GetSampleCount())
		}
	}
	return n
}

// cpu gives the CPU time this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func pod(ns, name string) *example.Pod {
	p := &example.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{"app": "bench"}}}
	p.Annotations = map[string]string{"text": fmt.Sprintf("%0200d", 7)}
	p.Spec.NodeName = "node-1"
	return p
}

func key(ns, name string) string { return "/pods/" + ns + "/" + name }

var background = context.Background()
