// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build etcd

package server

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// noFsync is a variable of the environment that makes etcd not wait for the disk, to compare with storage in memory.
const noFsync = "WHERRY_ETCD_NO_FSYNC"

// etcdLimit is how long etcd may take to be ready.
const etcdLimit = time.Minute

func init() { startEtcd = runEtcd }

func runEtcd() (string, func(), error) {
	dir, err := os.MkdirTemp("", "wherry-etcd-")
	if err != nil {
		return "", nil, err
	}
	c := embed.NewConfig()
	c.Dir, c.UnsafeNoFsync = dir, os.Getenv(noFsync) != ""
	c.LogLevel = "fatal"
	client, err := freeURL()
	if err != nil {
		return "", nil, err
	}
	peer, err := freeURL()
	if err != nil {
		return "", nil, err
	}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	e, err := embed.StartEtcd(c)
	if err != nil {
		return "", nil, fmt.Errorf("start etcd: %w", err)
	}
	stop := func() {
		e.Close()
		_ = os.RemoveAll(dir)
	}
	select {
	case <-e.Server.ReadyNotify():
		return client.String(), stop, nil
	case <-time.After(etcdLimit):
		stop()
		return "", nil, errors.New("etcd did not become ready")
	}
}

func freeURL() (url.URL, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return url.URL{}, err
	}
	defer l.Close()
	return url.URL{Scheme: "http", Host: l.Addr().String()}, nil
}
