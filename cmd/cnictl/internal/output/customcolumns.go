package output

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/table"
)

// missingField is printed for a path without a value, as in kubectl.
const missingField = "<none>"

// pathColumn is one custom column.
type pathColumn struct {
	header string
	path   *jsonpath.JSONPath
}

// parsePathColumns parses HEADER:path,HEADER:path. In a file, the first line has the headers
// and the second the paths, separated by blanks.
func parsePathColumns(o form, text string) ([]pathColumn, error) {
	var headers, paths []string
	if o.name == formCustomFile {
		lines := strings.SplitN(strings.TrimSpace(text), "\n", 2)
		if len(lines) < 2 {
			return nil, cli.Usage("-o %s: the file has a line of headers and a line of paths", o.name)
		}
		headers, paths = strings.Fields(lines[0]), strings.Fields(lines[1])
		if len(headers) != len(paths) {
			return nil, cli.Usage("-o %s: %d headers and %d paths", o.name, len(headers), len(paths))
		}
	} else {
		for _, item := range strings.Split(text, ",") {
			header, path, ok := strings.Cut(item, ":")
			if !ok || header == "" || path == "" {
				return nil, cli.Usage("unexpected custom-columns spec: %s, expected <header>:<json-path-expr>", item)
			}
			headers, paths = append(headers, header), append(paths, path)
		}
	}
	columns := make([]pathColumn, len(headers))
	for i, path := range paths {
		p := jsonpath.New(headers[i]).AllowMissingKeys(true)
		if err := p.Parse(relaxed(path)); err != nil {
			return nil, cli.Usage("-o %s: %s: %v", o.name, path, err)
		}
		columns[i] = pathColumn{headers[i], p}
	}
	return columns, nil
}

// relaxed treats x.y.z, .x.y.z and {.x.y.z} alike, as kubectl does.
func relaxed(path string) string {
	if strings.HasPrefix(path, "{") && strings.HasSuffix(path, "}") {
		return path
	}
	return "{." + strings.TrimPrefix(path, ".") + "}"
}

// customColumns makes a table of what the paths select in each item.
func customColumns(f *cli.Factory, o form, text string, object *unstructured.Unstructured) ([]byte, error) {
	columns, err := parsePathColumns(o, text)
	if err != nil {
		return nil, err
	}
	t := table.Table{}
	for _, c := range columns {
		t.Columns = append(t.Columns, table.Column{Name: c.header})
	}
	for _, item := range itemsOf(object) {
		row := make([]string, len(columns))
		for i, c := range columns {
			if row[i], err = find(c.path, item); err != nil {
				return nil, cli.Usage("-o %s: %s: %v", o.name, c.header, err)
			}
		}
		t.Rows = append(t.Rows, table.Cells(row...))
	}
	opts := TableOptions(f)
	opts.Width = 0 // the columns were requested by name: drop none
	return joinLines(t.Lines(opts)), nil
}

func find(path *jsonpath.JSONPath, item map[string]any) (string, error) {
	results, err := path.FindResults(item)
	if err != nil {
		return "", err
	}
	var values []string
	for _, found := range results {
		for _, v := range found {
			if v.CanInterface() && v.Interface() != nil {
				values = append(values, fmt.Sprint(v.Interface()))
			}
		}
	}
	if len(values) == 0 {
		return missingField, nil
	}
	return strings.Join(values, ","), nil
}
