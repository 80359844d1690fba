// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client"
)

const (
	// defaultCRDMaxTime bounds the wait for CRDs to be served.
	defaultCRDMaxTime = 10 * time.Second
	// defaultCRDPollInterval is how often the server is asked meanwhile.
	defaultCRDPollInterval = 100 * time.Millisecond
	// crdRequestTimeout bounds a single request about a CRD.
	crdRequestTimeout = 30 * time.Second
)

// CRDInstallOptions say which custom resource definitions to install, and how.
type CRDInstallOptions struct {
	// Scheme is for conversion webhooks: kinds that convert in this process are
	// found by it. Nil means none.
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
}

// InstallCRDs creates or updates the CRDs that options name, waits until the
// server serves them, and returns them.
func InstallCRDs(config *rest.Config, options CRDInstallOptions) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if err := ReadCRDFiles(&options); err != nil {
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
	c, err := crdClient(config)
	if err != nil {
		return err
	}
	for _, crd := range crds {
		if err := createOrReplace(c, crd); err != nil {
			return fmt.Errorf("install CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}

// createOrReplace stores crd, retrying while somebody else writes it too.
func createOrReplace(c client.Client, crd *apiextensionsv1.CustomResourceDefinition) error {
	ctx, cancel := context.WithTimeout(context.Background(), crdRequestTimeout)
	defer cancel()
	for {
		wanted := crd.DeepCopy()
		wanted.ResourceVersion = ""
		err := c.Create(ctx, wanted)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		var stored apiextensionsv1.CustomResourceDefinition
		if err := c.Get(ctx, client.ObjectKeyFromObject(crd), &stored); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return err
		}
		wanted.ResourceVersion = stored.ResourceVersion
		if err := c.Update(ctx, wanted); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// WaitForCRDs waits until every served version of every CRD can be used.
func WaitForCRDs(config *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition, options CRDInstallOptions) error {
	c, err := crdClient(config)
	if err != nil {
		return err
	}
	limit := orDefault(options.MaxTime, defaultCRDMaxTime)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	tick := time.NewTicker(orDefault(options.PollInterval, defaultCRDPollInterval))
	defer tick.Stop()
	for _, crd := range crds {
		for {
			err := served(ctx, config, c, crd)
			if err == nil {
				break
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return fmt.Errorf("CRD %s is not served after %v: %w", crd.Name, limit, err)
			}
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
	c, err := crdClient(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), crdRequestTimeout)
	defer cancel()
	for _, crd := range options.CRDs {
		if err := client.IgnoreNotFound(c.Delete(ctx, crd.DeepCopy())); err != nil {
			return fmt.Errorf("delete CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}

// crdExtensions are the file names that may hold CRDs.
var crdExtensions = []string{".yaml", ".yml", ".json"}

// readCRDs reads the CRDs of all paths.
func readCRDs(paths []string, mustExist bool) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, path := range paths {
		files := []string{path}
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !mustExist:
			continue
		case err != nil:
			return nil, fmt.Errorf("CRD path: %w", err)
		case info.IsDir():
			if files, err = crdFiles(path); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			crds, err := readCRDFile(file)
			if err != nil {
				return nil, fmt.Errorf("read CRDs from %s: %w", file, err)
			}
			all = append(all, crds...)
		}
	}
	return all, nil
}

func crdFiles(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("CRD folder: %w", err)
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains(crdExtensions, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(folder, e.Name()))
		}
	}
	return files, nil
}

// readCRDFile reads a file of YAML or JSON documents and keeps the CRDs.
func readCRDFile(path string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		var document runtime.RawExtension
		if err := documents.Decode(&document); errors.Is(err, io.EOF) {
			return crds, nil
		} else if err != nil {
			return nil, err
		}
		var kind metav1.TypeMeta
		if len(document.Raw) == 0 || json.Unmarshal(document.Raw, &kind) != nil || kind.Kind != "CustomResourceDefinition" {
			continue // an empty document, or another kind of object
		}
		if kind.APIVersion != apiextensionsv1.SchemeGroupVersion.String() {
			return nil, fmt.Errorf("a CustomResourceDefinition of %s: only %s is served", kind.APIVersion, apiextensionsv1.SchemeGroupVersion)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := json.Unmarshal(document.Raw, crd); err != nil {
			return nil, err
		}
		crds = append(crds, crd)
	}
}
