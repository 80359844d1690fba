// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"context"
	"fmt"

	"github.com/wherry-dev/wherry/webhook/conversion"
)

func ExampleNewHubSpokeConverter() {
	v1 := conversion.NewSpokeConverter(&GadgetV1{},
		func(_ context.Context, hub *GadgetV2, spoke *GadgetV1) error {
			spoke.ObjectMeta, spoke.Seconds = hub.ObjectMeta, hub.Millis/1000
			return nil
		},
		func(_ context.Context, spoke *GadgetV1, hub *GadgetV2) error {
			hub.ObjectMeta, hub.Millis = spoke.ObjectMeta, spoke.Seconds*1000
			return nil
		})
	converter, err := conversion.NewHubSpokeConverter(&GadgetV2{}, v1, v3Spoke())(gadgets())
	if err != nil {
		fmt.Println(err)
		return
	}
	to := &GadgetV3{}
	fmt.Println(converter.ConvertObject(context.Background(), &GadgetV1{Seconds: 2}, to), to.Micros)
	// Output: <nil> 2000000
}
