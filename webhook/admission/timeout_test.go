// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import "os"

// timeout is what a connection says when its read deadline has passed.
type timeout struct{}

func (timeout) Error() string { return "i/o timeout" }

func (timeout) Is(target error) bool { return target == os.ErrDeadlineExceeded }
