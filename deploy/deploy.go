package deploy

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed crds/*.yaml rbac/*.yaml iam/*.json aws-node.yaml
var files embed.FS

// CRDs returns the CustomResourceDefinitions, by file name.
func CRDs() ([]*unstructured.Unstructured, error) {
	entries, err := files.ReadDir("crds")
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, e := range entries {
		objects, err := decode(path.Join("crds", e.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	return out, nil
}

// RBAC returns the objects of rbac/NAME.yaml: "aws-node", "aws-node-annotate" (beside
// aws-node, for ANNOTATE_POD_IP) or "cni-metrics-helper".
func RBAC(name string) ([]*unstructured.Unstructured, error) {
	return decode(path.Join("rbac", name+".yaml"))
}

// IAM returns the policy iam/NAME.json as it is written: "aws-node-ipv4",
// "aws-node-ipv6" or "cni-metrics-helper".
func IAM(name string) (json.RawMessage, error) {
	return files.ReadFile(path.Join("iam", name+".json"))
}

// Manifest returns the objects of aws-node.yaml.
func Manifest() ([]*unstructured.Unstructured, error) {
	return decode("aws-node.yaml")
}

// decode reads the documents of a YAML file. A name that a document has twice is an
// error, as is one that the embedded files do not have.
func decode(file string) ([]*unstructured.Unstructured, error) {
	data, err := files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for docs := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(data))); ; {
		doc, err := nextDocument(docs, len(data))
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		o := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(doc, &o.Object); err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", file, len(out)+1, err)
		}
		out = append(out, o)
	}
}

func nextDocument(docs io.Reader, size int) ([]byte, error) {
	doc := make([]byte, size+1)
	n, err := docs.Read(doc)
	return doc[:n], err
}
