// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
)

// Converter converts objects of one kind between its versions. It is called from many goroutines at once.
type Converter interface {
	// ConvertObject writes src's content into dst, an empty object of another version with apiVersion and kind set. Metadata
	// other than labels and annotations must come through unchanged: the API server refuses the answer otherwise. src is the
	// converter's to use up.
	ConvertObject(ctx context.Context, src, dst runtime.Object) error
}
