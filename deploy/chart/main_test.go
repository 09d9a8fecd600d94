package chart_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"cnictl/testenv"
	"cnictl/testenv/kube/kubeapi"
)

//testlayers:uses=tools/helm
func TestMain(m *testing.M) { kubeapi.Main(m) }

// The directories of the charts.
const (
	cni    = "aws-vpc-cni"
	helper = "cni-metrics-helper"
)

const namespace = "kube-system"

// helm runs the command and returns its output. The error of a refusal has its text.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program, err := filepath.Abs("../../.cache/tools/helm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		testenv.Missing(t, "kube", err.Error(), "make $PWD/.cache/tools/helm")
	}
	var out, said bytes.Buffer
	c := exec.CommandContext(t.Context(), program, args...)
	home := t.TempDir()
	c.Env = append(os.Environ(), "HOME="+home, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, said.String())
	}
	return out.String(), nil
}

// registry sets the images' registry of each chart, as in the generated manifests. The name never
// resolves: applying an unedited manifest pulls nothing.
var registry = map[string]string{cni: "global.image.registry=registry.invalid/cnictl", helper: "image.registry=registry.invalid/cnictl"}

// render is helm template, with the usual release name.
func render(t *testing.T, chart string, args ...string) (string, error) {
	t.Helper()
	return helm(t, append([]string{"template", chart, chart, "--namespace", namespace, "--set", registry[chart]}, args...)...)
}

func mustRender(t *testing.T, chart string, args ...string) string {
	t.Helper()
	out, err := render(t, chart, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// objects parses the documents of a text.
func objects(t *testing.T, text string) (out []*unstructured.Unstructured) {
	t.Helper()
	for docs := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		o := &unstructured.Unstructured{}
		if err == nil {
			err = yaml.UnmarshalStrict(doc, &o.Object)
		}
		if err != nil {
			t.Fatalf("%v in:\n%s", err, doc)
		}
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
}

// published returns the objects of upstream's manifest.
func published(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return objects(t, readFile(t, "testdata/upstream.yaml"))
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// file writes a values file.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func ofKind(all []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	i := slices.IndexFunc(all, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
	if i < 0 {
		return nil
	}
	return all[i]
}
