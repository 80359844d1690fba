// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/wherry-dev/wherry/test/apiserver/controllers"
)

// runControllers runs Kubernetes' own controllers against a server until this program is told to stop.
func runControllers(c *commandLine) int {
	if len(c.only.values) == 0 || c.kubeconfig == "" {
		return complain(exitUsage, errors.New("controllers needs --only NAME,... and --kubeconfig FILE; there are "+
			strings.Join(controllers.Names(), ", ")))
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return complain(exitError, fmt.Errorf("cannot read the kubeconfig %s: %w", c.kubeconfig, err))
	}
	ctx, stop := newStopper(c)
	defer stop.release()
	set, err := controllers.Start(ctx, config, c.only.values...)
	if err != nil {
		if ctx.Err() != nil {
			return 0 // it was told to stop
		}
		return complain(exitError, err)
	}
	defer set.Stop()
	if err := set.WaitForSync(ctx); err != nil {
		if ctx.Err() != nil {
			return 0
		}
		return complain(exitError, fmt.Errorf("the server in %s does not answer: %w", c.kubeconfig, err))
	}
	fmt.Println("running", strings.Join(c.only.values, ","))
	<-ctx.Done()
	return 0
}
