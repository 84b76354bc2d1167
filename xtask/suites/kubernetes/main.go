// Builds kustomizations and validates their resources like an API server on creation: known fields, defaults, the
// server's own validation and warnings, and the profile `restricted` of Pod security.
//
// manifests FOLDER: prints the built resources as JSON, or what is wrong with them, one line each, and exits with 1.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Validation of a new object, by kind.
var strategies = map[schema.GroupVersionKind]rest.RESTCreateStrategy{
	batchv1.SchemeGroupVersion.WithKind("Job"):                  job.Strategy,
	corev1.SchemeGroupVersion.WithKind("ConfigMap"):             configmap.Strategy,
	corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"): persistentvolumeclaim.Strategy,
}

// Unknown and duplicate fields are errors.
var decoder = serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manifests FOLDER")
		os.Exit(2)
	}
	resources, faults := judge(os.Args[1])
	for _, fault := range faults {
		fmt.Fprintln(os.Stderr, fault)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(resources)
}

func judge(folder string) (resources []json.RawMessage, faults []string) {
	options := krusty.MakeDefaultOptions()
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, []string{err.Error()}
	}
	for _, resource := range built.Resources() {
		text, err := resource.MarshalJSON()
		if err != nil {
			return nil, []string{err.Error()}
		}
		resources = append(resources, text)
		for _, fault := range faultsOf(text) {
			faults = append(faults, fmt.Sprintf("%s %s: %s", resource.GetKind(), resource.GetName(), fault))
		}
	}
	return resources, faults
}

func faultsOf(text []byte) (faults []string) {
	object, kind, err := decoder.Decode(text, nil, nil)
	if err != nil {
		return []string{err.Error()}
	}
	strategy, isKnown := strategies[*kind]
	if !isKnown {
		return []string{fmt.Sprintf("no validator for objects of kind %s", kind)}
	}
	legacyscheme.Scheme.Default(object)
	internal, err := legacyscheme.Scheme.ConvertToVersion(object, schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		return []string{err.Error()}
	}
	metadata, err := meta.Accessor(internal)
	if err != nil {
		return []string{err.Error()}
	}
	rest.FillObjectMetaSystemFields(metadata)
	ctx := request.WithNamespace(request.NewContext(), "default")
	if err := rest.BeforeCreate(strategy, ctx, internal); err != nil {
		faults = append(faults, err.Error())
	}
	faults = append(faults, strategy.WarningsOnCreate(ctx, internal)...)
	if job, isJob := object.(*batchv1.Job); isJob {
		faults = append(faults, security(&job.Spec.Template)...)
	}
	return faults
}

// Violations of the profile `restricted`.
func security(template *corev1.PodTemplateSpec) (faults []string) {
	latest := api.LatestVersion()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), &latest)
	if err != nil {
		return []string{err.Error()}
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: latest}
	for _, result := range evaluator.EvaluatePod(level, &template.ObjectMeta, &template.Spec) {
		if !result.Allowed {
			faults = append(faults, strings.TrimSpace(result.ForbiddenReason+": "+result.ForbiddenDetail))
		}
	}
	return faults
}
