// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import "k8s.io/apimachinery/pkg/runtime/schema"

// traits are the facts about a built-in kind that its Go type does not tell.
type traits uint8

const (
	// clusterScoped kinds live outside of namespaces.
	clusterScoped traits = 1 << iota
	// versioned kinds refuse an Update without a resourceVersion.
	versioned
	// upserted kinds are created by an Update of an object that does not exist.
	upserted
	// hasStatus kinds have a status sub-resource.
	hasStatus
	// hasGeneration kinds count the changes of their spec.
	hasGeneration
	// graceful kinds are given time to go away.
	graceful
)

// customTraits are those of every custom resource, as far as nobody has said otherwise.
const customTraits = versioned | hasGeneration

// isBuiltin tells whether a group's kinds are served by the API server itself and listed here. Groups are named one by one,
// because many a custom resource lives in a group that ends in k8s.io.
func isBuiltin(group string) bool {
	_, ok := builtin[group]
	return ok
}

// traitsOf gives what the tables say about a kind. A built-in kind without an entry has no special traits.
func traitsOf(gk schema.GroupKind) traits {
	kinds, ok := builtin[gk.Group]
	if !ok {
		return customTraits
	}
	return kinds[gk.Kind]
}

// builtin has a row for each group that the API server serves. Kinds that are namespaced, may be updated unconditionally
// and have neither status nor generation need no entry. The conformance suite compares it with a server.
var builtin = map[string]map[string]traits{
	"": {
		"Binding":               0,
		"ComponentStatus":       clusterScoped,
		"Endpoints":             upserted,
		"Event":                 upserted,
		"LimitRange":            upserted,
		"Namespace":             clusterScoped | hasStatus,
		"Node":                  clusterScoped | hasStatus,
		"PersistentVolume":      clusterScoped | hasStatus,
		"PersistentVolumeClaim": hasStatus,
		"Pod":                   hasStatus | hasGeneration | graceful,
		"PodTemplate":           hasGeneration,
		"ReplicationController": hasStatus | hasGeneration,
		"ResourceQuota":         hasStatus,
		"Service":               hasStatus | upserted,
	},
	"admissionregistration.k8s.io": {
		"MutatingAdmissionPolicy":          clusterScoped | versioned | hasGeneration,
		"MutatingAdmissionPolicyBinding":   clusterScoped | versioned | hasGeneration,
		"MutatingWebhookConfiguration":     clusterScoped | versioned | hasGeneration,
		"ValidatingAdmissionPolicy":        clusterScoped | versioned | hasStatus | hasGeneration,
		"ValidatingAdmissionPolicyBinding": clusterScoped | versioned | hasGeneration,
		"ValidatingWebhookConfiguration":   clusterScoped | versioned | hasGeneration,
	},
	"apiextensions.k8s.io": {
		"CustomResourceDefinition": clusterScoped | versioned | hasStatus | hasGeneration,
	},
	"apiregistration.k8s.io": {
		"APIService": clusterScoped | versioned | hasStatus,
	},
	"apps": {
		"DaemonSet":   hasStatus | hasGeneration,
		"Deployment":  hasStatus | hasGeneration,
		"ReplicaSet":  hasStatus | hasGeneration,
		"StatefulSet": hasStatus | hasGeneration,
	},
	"authentication.k8s.io": {
		"SelfSubjectReview": clusterScoped,
		"TokenReview":       clusterScoped,
	},
	"authorization.k8s.io": {
		"SelfSubjectAccessReview": clusterScoped,
		"SelfSubjectRulesReview":  clusterScoped,
		"SubjectAccessReview":     clusterScoped,
	},
	"autoscaling": {
		"HorizontalPodAutoscaler": hasStatus,
	},
	"batch": {
		"CronJob": hasStatus | hasGeneration,
		"Job":     hasStatus | hasGeneration,
	},
	"certificates.k8s.io": {
		"CertificateSigningRequest": clusterScoped | hasStatus,
		"ClusterTrustBundle":        clusterScoped | versioned,
		"PodCertificateRequest":     hasStatus,
	},
	"coordination.k8s.io": {
		"Lease":          versioned | upserted,
		"LeaseCandidate": versioned,
	},
	"discovery.k8s.io": {
		"EndpointSlice": hasGeneration,
	},
	"events.k8s.io": {
		"Event": upserted,
	},
	"extensions": {},
	"flowcontrol.apiserver.k8s.io": {
		"FlowSchema":                 clusterScoped | hasStatus | hasGeneration,
		"PriorityLevelConfiguration": clusterScoped | hasStatus | hasGeneration,
	},
	"internal.apiserver.k8s.io": {
		"StorageVersion": clusterScoped | versioned | hasStatus,
	},
	"networking.k8s.io": {
		"IPAddress":     clusterScoped,
		"Ingress":       hasStatus | hasGeneration,
		"IngressClass":  clusterScoped | hasGeneration,
		"NetworkPolicy": hasGeneration,
		"ServiceCIDR":   clusterScoped | hasStatus,
	},
	"node.k8s.io": {
		"RuntimeClass": clusterScoped | versioned | upserted,
	},
	"policy": {
		"PodDisruptionBudget": versioned | hasStatus | hasGeneration,
	},
	"rbac.authorization.k8s.io": {
		"ClusterRole":        clusterScoped | upserted,
		"ClusterRoleBinding": clusterScoped | upserted,
		"Role":               upserted,
		"RoleBinding":        upserted,
	},
	"resource.k8s.io": {
		"DeviceClass":     clusterScoped | hasGeneration,
		"DeviceTaintRule": clusterScoped,
		"ResourceClaim":   hasStatus,
		"ResourceSlice":   clusterScoped | hasGeneration,
	},
	"scheduling.k8s.io": {
		"PriorityClass": clusterScoped | hasGeneration,
	},
	"storage.k8s.io": {
		"CSIDriver":             clusterScoped | versioned,
		"CSINode":               clusterScoped | versioned,
		"StorageClass":          clusterScoped,
		"VolumeAttachment":      clusterScoped | versioned | hasStatus,
		"VolumeAttributesClass": clusterScoped,
	},
	"storagemigration.k8s.io": {
		"StorageVersionMigration": clusterScoped | versioned | hasStatus,
	},
}
