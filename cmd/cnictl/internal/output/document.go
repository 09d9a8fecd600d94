package output

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/printers"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/encode"

	"cnictl/daemon/fleet/document"
	"cnictl/tui/show"
)

// Structured reports whether the output is a document rather than text for people.
func Structured(f *cli.Factory) bool { return formOf(f.Globals.Output).document() }

// Wide reports whether tables show all their columns.
func Wide(f *cli.Factory) bool { return f.Globals.Output == formWide }

// PrintDocument writes a document in the requested form. stream writes JSON on one line and
// YAML with a separator, for --watch.
func PrintDocument(f *cli.Factory, doc any, stream bool) error {
	out := formOf(f.Globals.Output)
	var b []byte
	var err error
	switch {
	case out.name == formYAML:
		b, err = encode.YAML(doc)
		if stream {
			b = append([]byte("---\n"), b...)
		}
	case out.name != formJSON:
		b, err = render(f, out, doc, stream)
	case stream:
		b, err = encode.JSONLine(doc)
	default:
		b, err = encode.JSON(doc)
	}
	if err != nil {
		return err
	}
	return write(f, b)
}

// render formats a document with kubectl's printers. Strings are made safe first, since a
// template's output goes to the terminal unchanged.
func render(f *cli.Factory, out form, doc any, stream bool) ([]byte, error) {
	object, err := objectOf(doc)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	var printer printers.ResourcePrinter
	text, err := out.template()
	if err != nil {
		return nil, err
	}
	switch out.name {
	case Name:
		for _, item := range named(object) {
			if err := new(printers.NamePrinter).PrintObj(item, &b); err != nil {
				return nil, fmt.Errorf("print names: %w", err)
			}
		}
		return b.Bytes(), nil
	case formCustom, formCustomFile:
		return customColumns(f, out, text, object)
	case formTemplate, formTemplateFile:
		p, err := printers.NewGoTemplatePrinter([]byte(text))
		if err != nil {
			return nil, cli.Usage("error parsing template %s, %v", text, err)
		}
		p.AllowMissingKeys(true)
		printer = p
	default:
		p, err := printers.NewJSONPathPrinter(text)
		if err != nil {
			return nil, cli.Usage("error parsing jsonpath %s, %v", text, err)
		}
		p.AllowMissingKeys(true)
		p.EnableJSONOutput(out.name == formJSONPathJSON)
		printer = p
		dropUnknown(object.Object)
	}
	if err := printer.PrintObj(object, &b); err != nil {
		first, _, _ := strings.Cut(err.Error(), ". Printing more information")
		return nil, cli.Usage("%s", strings.TrimSpace(first))
	}
	if stream && !bytes.HasSuffix(b.Bytes(), []byte("\n")) {
		b.WriteByte('\n')
	}
	return b.Bytes(), nil
}

// objectOf converts a document to what kubectl's printers take: an object with its apiVersion
// and kind.
func objectOf(doc any) (*unstructured.Unstructured, error) {
	b, err := document.Marshal(doc)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if err := utiljson.Unmarshal(b, &content); err != nil {
		return nil, fmt.Errorf("read document: %w", err)
	}
	object := &unstructured.Unstructured{Object: safeTexts(content).(map[string]any)}
	return object, nil
}

// safeTexts makes every string in a document safe to print.
func safeTexts(v any) any {
	switch v := v.(type) {
	case string:
		return show.Safe(v)
	case []any:
		for i := range v {
			v[i] = safeTexts(v[i])
		}
	case map[string]any:
		for key, value := range v {
			safe := show.Safe(key)
			if safe != key {
				delete(v, key)
			}
			v[safe] = safeTexts(value)
		}
	}
	return v
}

// dropUnknown removes members that are null: a JSONPath filter that compares a null fails,
// but skips a missing member, as with kubectl's objects.
func dropUnknown(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			dropUnknown(item)
		}
	case map[string]any:
		for key, value := range v {
			if value == nil {
				delete(v, key)
			} else {
				dropUnknown(value)
			}
		}
	}
}

// itemsOf returns the items of a list, or else the object itself.
func itemsOf(object *unstructured.Unstructured) []map[string]any {
	list, ok := object.Object["items"].([]any)
	if !ok {
		return []map[string]any{object.Object}
	}
	var items []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			items = append(items, m)
		}
	}
	return items
}

// podKinds are the kinds of documents about a pod, for which -o name prints the pod.
var podKinds = []string{
	document.KindPodReport, strings.TrimSuffix(document.KindPodList, "List"), strings.TrimSuffix(document.KindFleetPodList, "List"),
}

// podName returns the NAMESPACE/NAME of the pod that an item describes; "" if none.
func podName(item map[string]any) string {
	if pod, ok := item["pod"].(map[string]any); ok {
		item = pod
	}
	namespace, _ := item["namespace"].(string)
	name, _ := item["name"].(string)
	if namespace == "" || name == "" {
		return ""
	}
	return namespace + "/" + name
}

// nameMembers are where an item may have its name; the first one present counts.
var nameMembers = [][]string{{"metadata", "name"}, {"name"}, {"code"}, {"address"}, {"id"}, {"pod"}, {"node"}, {"instanceType"}, {"cidr"}}

// named returns the objects that -o name prints. Items without a kind take it from that of
// their list.
func named(object *unstructured.Unstructured) []runtime.Object {
	var out []runtime.Object
	for _, item := range itemsOf(object) {
		kind, _ := item["kind"].(string)
		if kind == "" {
			kind = strings.TrimSuffix(object.GetKind(), "List")
		}
		one := &unstructured.Unstructured{Object: map[string]any{"apiVersion": object.GetAPIVersion(), "kind": kind}}
		if slices.Contains(podKinds, kind) {
			one.SetKind("Pod")
			one.SetName(podName(item))
			out = append(out, one)
			continue
		}
		for _, path := range nameMembers {
			if name, found, err := unstructured.NestedString(item, path...); found && err == nil && name != "" {
				one.SetName(name)
				break
			}
		}
		out = append(out, one)
	}
	return out
}
