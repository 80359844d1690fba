// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"net/url"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A query is the parameters of a request as they stand in its URL. The functions below write every field of the option
// types of meta/v1, in alphabetical order; a test compares them with apimachinery's own writer, field by field.
type query struct{ text strings.Builder }

func (q *query) add(key, value string) {
	if value == "" {
		return
	}
	if q.text.Len() > 0 {
		q.text.WriteByte('&')
	}
	q.text.WriteString(key)
	q.text.WriteByte('=')
	q.text.WriteString(url.QueryEscape(value))
}

func (q *query) addAll(key string, values []string) {
	for _, value := range values {
		q.add(key, value)
	}
}

func (q *query) addBool(key string, value bool) {
	if value {
		q.add(key, "true")
	}
}

func (q *query) addInt(key string, value int64) {
	if value != 0 {
		q.add(key, strconv.FormatInt(value, 10))
	}
}

func getQuery(o *metav1.GetOptions) string {
	var q query
	q.add("resourceVersion", o.ResourceVersion)
	return q.text.String()
}

func listQuery(o *metav1.ListOptions) string {
	var q query
	q.addBool("allowWatchBookmarks", o.AllowWatchBookmarks)
	q.add("continue", o.Continue)
	q.add("fieldSelector", o.FieldSelector)
	q.add("labelSelector", o.LabelSelector)
	q.addInt("limit", o.Limit)
	q.add("resourceVersion", o.ResourceVersion)
	q.add("resourceVersionMatch", string(o.ResourceVersionMatch))
	if o.SendInitialEvents != nil {
		q.add("sendInitialEvents", strconv.FormatBool(*o.SendInitialEvents))
	}
	q.add("shardSelector", o.ShardSelector)
	if o.TimeoutSeconds != nil {
		q.add("timeoutSeconds", strconv.FormatInt(*o.TimeoutSeconds, 10))
	}
	q.addBool("watch", o.Watch)
	return q.text.String()
}

func createQuery(o *metav1.CreateOptions) string {
	return writeQuery(o.DryRun, o.FieldManager, o.FieldValidation, nil)
}

func updateQuery(o *metav1.UpdateOptions) string {
	return writeQuery(o.DryRun, o.FieldManager, o.FieldValidation, nil)
}

func patchQuery(o *metav1.PatchOptions) string {
	return writeQuery(o.DryRun, o.FieldManager, o.FieldValidation, o.Force)
}

func writeQuery(dryRun []string, fieldManager, fieldValidation string, force *bool) string {
	var q query
	q.addAll("dryRun", dryRun)
	q.add("fieldManager", fieldManager)
	q.add("fieldValidation", fieldValidation)
	if force != nil {
		q.add("force", strconv.FormatBool(*force))
	}
	return q.text.String()
}
