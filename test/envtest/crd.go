// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client"
)

const (
	// defaultMaxTime bounds the wait for what was installed to be served.
	defaultMaxTime = 10 * time.Second
	// defaultPollInterval is how often the server is asked meanwhile.
	defaultPollInterval = 100 * time.Millisecond
	// requestTimeout bounds a single request about what is installed.
	requestTimeout = 30 * time.Second
)

// CRDInstallOptions say which custom resource definitions to install, and how.
type CRDInstallOptions struct {
	// Scheme tells which kinds convert in this process: those of which one version
	// is a conversion.Hub and all others are conversion.Convertible. Nil means
	// apiutil.DefaultScheme.
	Scheme *runtime.Scheme

	// Paths are files with CRDs, or folders whose files (.yaml, .yml, .json) may
	// hold CRDs among other objects. Folders are not searched deeper.
	Paths []string

	// CRDs are CRDs to install beside those found in Paths. InstallCRDs puts all
	// it installed here.
	CRDs []*apiextensionsv1.CustomResourceDefinition

	// ErrorIfPathMissing makes a path that does not exist an error; otherwise it
	// is passed over.
	ErrorIfPathMissing bool

	// MaxTime bounds the wait until the CRDs are served; zero means 10 s.
	MaxTime time.Duration

	// PollInterval is how often the server is asked meanwhile; zero means 100 ms.
	PollInterval time.Duration

	// CleanUpAfterUse makes Environment.Stop delete the CRDs: for clusters that
	// live on.
	CleanUpAfterUse bool

	// WebhookOptions say where the conversion webhooks of this process are. They
	// must be prepared: without LocalServingCAData the CRDs are installed as they
	// are. Environment sets them.
	WebhookOptions WebhookInstallOptions
}

// InstallCRDs creates or updates the CRDs that options name, waits until the
// server serves them, and returns them as they were installed. Those in options
// stay as they are.
func InstallCRDs(config *rest.Config, options CRDInstallOptions) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if err := ReadCRDFiles(&options); err != nil {
		return nil, err
	}
	var err error
	if options.CRDs, err = withConversion(options.CRDs, options.Scheme, &options.WebhookOptions); err != nil {
		return nil, err
	}
	if err := CreateCRDs(config, options.CRDs); err != nil {
		return options.CRDs, err
	}
	return options.CRDs, WaitForCRDs(config, options.CRDs, options)
}

// ReadCRDFiles adds the CRDs found in options.Paths to options.CRDs. Of several
// with one name the last counts, and those found in Paths after those given.
func ReadCRDFiles(options *CRDInstallOptions) error {
	found, err := readCRDs(options.Paths, options.ErrorIfPathMissing)
	if err != nil {
		return err
	}
	byName := map[string]int{}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range append(slices.Clone(options.CRDs), found...) {
		if i, twice := byName[crd.Name]; twice {
			all[i] = crd
			continue
		}
		byName[crd.Name] = len(all)
		all = append(all, crd)
	}
	options.CRDs = all
	return nil
}

// CreateCRDs creates the CRDs, or updates those that are there already.
func CreateCRDs(config *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition) error {
	c, err := ownClient(config)
	if err != nil {
		return err
	}
	for _, crd := range crds {
		if err := createOrReplace(c, crd, &apiextensionsv1.CustomResourceDefinition{}); err != nil {
			return fmt.Errorf("install CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}

// createOrReplace stores a copy of obj, retrying while somebody else writes it
// too; what is there already goes into stored.
func createOrReplace(c client.Client, obj, stored client.Object) error {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	for {
		wanted := obj.DeepCopyObject().(client.Object)
		wanted.SetResourceVersion("")
		err := c.Create(ctx, wanted)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), stored); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return err
		}
		wanted.SetResourceVersion(stored.GetResourceVersion())
		if err := c.Update(ctx, wanted); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// WaitForCRDs waits until every served version of every CRD can be used.
func WaitForCRDs(config *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition, options CRDInstallOptions) error {
	c, err := ownClient(config)
	if err != nil {
		return err
	}
	limit := orDefault(options.MaxTime, defaultMaxTime)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for _, crd := range crds {
		err := poll(ctx, orDefault(options.PollInterval, defaultPollInterval), func() error { return served(ctx, config, c, crd) })
		if err != nil {
			return fmt.Errorf("CRD %s is not served after %v: %w", crd.Name, limit, err)
		}
	}
	return nil
}

// served says why crd cannot be used yet, or nil.
func served(ctx context.Context, config *rest.Config, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) error {
	var stored apiextensionsv1.CustomResourceDefinition
	if err := c.Get(ctx, client.ObjectKeyFromObject(crd), &stored); err != nil {
		return err
	}
	for _, condition := range stored.Status.Conditions {
		if condition.Type == apiextensionsv1.NamesAccepted && condition.Status == apiextensionsv1.ConditionFalse {
			return fmt.Errorf("its names are taken: %s", condition.Message)
		}
	}
	established := slices.ContainsFunc(stored.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
	if !established {
		return errors.New("it is not established")
	}
	for _, version := range stored.Spec.Versions {
		if !version.Served {
			continue
		}
		if err := discovered(ctx, config, stored.Spec.Group, version.Name, stored.Spec.Names.Plural); err != nil {
			return err
		}
	}
	return nil
}

// discovered asks the server's discovery for one resource.
func discovered(ctx context.Context, config *rest.Config, group, version, plural string) error {
	rc, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	plain := rest.CopyConfig(config)
	plain.NegotiatedSerializer, plain.GroupVersion = codecs.WithoutConversion(), &metav1.SchemeGroupVersion
	raw, err := rest.UnversionedRESTClientForConfigAndClient(plain, rc)
	if err != nil {
		return err
	}
	body, err := raw.Get().AbsPath("/apis", group, version).DoRaw(ctx)
	if err != nil {
		return err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return err
	}
	if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == plural }) {
		return fmt.Errorf("discovery of %s/%s does not list %s yet", group, version, plural)
	}
	return nil
}

// UninstallCRDs deletes the CRDs that options name, and with them their
// objects. One that is gone already is no error.
func UninstallCRDs(config *rest.Config, options CRDInstallOptions) error {
	if err := ReadCRDFiles(&options); err != nil {
		return err
	}
	c, err := ownClient(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	for _, crd := range options.CRDs {
		if err := client.IgnoreNotFound(c.Delete(ctx, crd.DeepCopy())); err != nil {
			return fmt.Errorf("delete CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}

// readCRDs reads the CRDs of all paths.
func readCRDs(paths []string, mustExist bool) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	documents, err := readManifests("CRD", paths, mustExist)
	if err != nil {
		return nil, err
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, d := range documents {
		if d.Kind != "CustomResourceDefinition" {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := d.into(crd, apiextensionsv1.SchemeGroupVersion.String()); err != nil {
			return nil, err
		}
		all = append(all, crd)
	}
	return all, nil
}
