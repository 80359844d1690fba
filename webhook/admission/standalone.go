// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"net/http"

	"github.com/go-logr/logr"

	"github.com/wherry-dev/wherry/webhook/review"
)

// StandaloneOptions shape a webhook that no webhook.Server serves.
type StandaloneOptions struct {
	// Logger is the webhook's logger. The zero value means client/log.Log.
	Logger logr.Logger

	// MetricsPath is the label of the webhook's metrics, most usefully the path it is served at. "" means no metrics.
	MetricsPath string
}

// StandaloneWebhook makes hook ready for a server of your own. API servers call webhooks over TLS only: that is the server's.
// The error is always nil.
func StandaloneWebhook(hook *Webhook, opts StandaloneOptions) (http.Handler, error) {
	if opts.Logger.GetSink() != nil {
		hook.log = opts.Logger
	}
	if opts.MetricsPath == "" {
		return hook, nil
	}
	return review.Metered(opts.MetricsPath, hook), nil
}
