// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func asStatus(err error, status *apierrors.APIStatus) bool { return errors.As(err, status) }
