// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"gomodules.xyz/jsonpatch/v2"

	"github.com/wherry-dev/wherry/webhook/admission"
)

// The names of package admission that most webhooks need.
type (
	// Admission is a webhook that answers admission reviews.
	Admission = admission.Webhook
	// AdmissionRequest is the question whether an object may be written.
	AdmissionRequest = admission.Request
	// AdmissionResponse is the answer to it.
	AdmissionResponse = admission.Response
	// AdmissionHandler answers requests.
	AdmissionHandler = admission.Handler
	// AdmissionDecoder reads the objects of a request.
	AdmissionDecoder = admission.Decoder
	// JSONPatchOp is one change of a patch.
	JSONPatchOp = jsonpatch.Operation

	// CustomDefaulter is a defaulter of no particular type.
	//
	// Deprecated: use admission.Defaulter of the type.
	CustomDefaulter = admission.CustomDefaulter
	// CustomValidator is a validator of no particular type.
	//
	// Deprecated: use admission.Validator of the type.
	CustomValidator = admission.CustomValidator
)

// The answers of package admission.
var (
	// Allowed lets a request through.
	Allowed = admission.Allowed
	// Denied refuses a request.
	Denied = admission.Denied
	// Patched lets a request through with changes.
	Patched = admission.Patched
	// Errored refuses a request that could not be judged.
	Errored = admission.Errored
)
