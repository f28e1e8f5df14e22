// SPDX-License-Identifier: Apache-2.0

// Package manifests checks what is to be given to Kubernetes against its API.
package manifests

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	network "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// kinds makes an empty object of each kind that the manifests have.
var kinds = map[string]func() any{
	"v1 Namespace":                       func() any { return new(core.Namespace) },
	"v1 ConfigMap":                       func() any { return new(core.ConfigMap) },
	"v1 Pod":                             func() any { return new(core.Pod) },
	"apps/v1 DaemonSet":                  func() any { return new(apps.DaemonSet) },
	"networking.k8s.io/v1 NetworkPolicy": func() any { return new(network.NetworkPolicy) },
}

// decode reads one document. A field that its kind does not have is an error.
func decode(text []byte) (any, error) {
	var head struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(text, &head); err != nil {
		return nil, err
	}
	object := kinds[head.APIVersion+" "+head.Kind]
	if object == nil {
		return nil, os.ErrInvalid
	}
	o := object()
	return o, yaml.UnmarshalStrict(text, o)
}

// The manifests have no field that the API lacks, and mount what the containers use.
func TestManifests(t *testing.T) {
	paths, err := filepath.Glob("../../deploy/kubernetes/*.yaml")
	if err != nil || len(paths) < 3 {
		t.Fatalf("%q, %v", paths, err)
	}
	var daemons, policies int
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			object, err := decode(document)
			if err != nil {
				t.Errorf("%s: %v: %.80s", path, err, document)
				continue
			}
			switch o := object.(type) {
			case *apps.DaemonSet:
				daemons++
				checkDaemon(t, o)
				checkMounts(t, path, &o.Spec.Template.Spec)
			case *core.Pod:
				checkMounts(t, path, &o.Spec)
			case *network.NetworkPolicy:
				policies++
			}
		}
	}
	if daemons != 1 || policies != 1 {
		t.Errorf("%d DaemonSets, %d NetworkPolicies: want one of each", daemons, policies)
	}
}

// checkDaemon compares the daemon's container with its unit.
func checkDaemon(t *testing.T, d *apps.DaemonSet) {
	t.Helper()
	for key, value := range d.Spec.Selector.MatchLabels {
		if d.Spec.Template.Labels[key] != value {
			t.Errorf("the template lacks the label %s=%s of the selector", key, value)
		}
	}
	unit, err := os.ReadFile("../../packaging/xdpfabd@.service")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(unit), "\nAmbientCapabilities=")
	line, _, _ = strings.Cut(line, "\n")
	var have []string
	for _, c := range d.Spec.Template.Spec.Containers[0].SecurityContext.Capabilities.Add {
		have = append(have, "CAP_"+string(c))
	}
	if want := strings.Fields(line); !slices.Equal(have, want) {
		t.Errorf("capabilities %q, and the unit has %q", have, want)
	}
}

// checkMounts finds volumes that no container mounts, and mounts of none.
func checkMounts(t *testing.T, path string, p *core.PodSpec) {
	t.Helper()
	var volumes, mounts []string
	for _, v := range p.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, c := range p.Containers {
		for _, m := range c.VolumeMounts {
			mounts = append(mounts, m.Name)
		}
	}
	slices.Sort(volumes)
	slices.Sort(mounts)
	if !slices.Equal(volumes, mounts) {
		t.Errorf("%s: volumes %q, mounts %q", path, volumes, mounts)
	}
}

// The check can fail.
func TestWrongManifests(t *testing.T) {
	for _, text := range []string{
		"apiVersion: v1\nkind: Pod\nspec: {containers: [{name: a, imagee: b}]}\n", "apiVersion: v1\nkind: Pot\n",
		"apiVersion: v1\nkind: Pod\nspec: {hostNetwork: 7}\n",
	} {
		if _, err := decode([]byte(text)); err == nil {
			t.Errorf("accepted: %s", text)
		}
	}
}
