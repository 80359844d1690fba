// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package signals

import "os"

var shutdownSignals = []os.Signal{os.Interrupt}
