package monitoring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// prometheusRule wraps a Prometheus rule file for the Prometheus Operator.
func prometheusRule(rules []byte) []byte {
	var out bytes.Buffer
	out.WriteString("# Made from rules.yaml by make generate: do not edit.\n" +
		"apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: aws-node\n  namespace: kube-system\nspec:\n")
	_, groups, _ := strings.Cut(string(rules), "\ngroups:\n")
	for line := range strings.Lines("groups:\n" + groups) {
		if line != "\n" {
			out.WriteString("  ")
		}
		out.WriteString(line)
	}
	return out.Bytes()
}

// row is a row of panels.yaml.
type row struct {
	Row    string
	Panels []panel
}

type panel struct {
	Title, Type, Unit, Description string
	Ours                           bool
	Targets                        []struct {
		Expr, Legend string
		Ours         bool // if the panel is not
	}
}

// object is a JSON object for Grafana.
type object = map[string]any

// Grafana's grid has 24 columns.
const (
	gridWidth   = 24
	panelWidth  = 8
	panelHeight = 8
	statHeight  = 4
)

// dashboard renders the panels as Grafana's JSON.
func dashboard(panels []byte) ([]byte, error) {
	var rows []row
	d := yaml.NewDecoder(bytes.NewReader(panels))
	d.KnownFields(true)
	if err := d.Decode(&rows); err != nil {
		return nil, fmt.Errorf("read the panels: %w", err)
	}
	source := object{"type": "prometheus", "uid": "${datasource}"}
	var out []object
	y := 0
	place := func(p object, x, w, h int) {
		p["id"], p["gridPos"] = len(out)+1, object{"x": x, "y": y, "w": w, "h": h}
		out = append(out, p)
	}
	for _, r := range rows {
		place(object{"type": "row", "title": r.Row, "collapsed": false, "panels": []object{}}, 0, gridWidth, 1)
		y++
		x, tallest := 0, 0
		for _, p := range r.Panels {
			w, h := panelWidth, panelHeight
			if p.Type == "stat" {
				w, h = gridWidth/4, statHeight
			}
			if x+w > gridWidth {
				x, y, tallest = 0, y+tallest, 0
			}
			place(p.grafana(source), x, w, h)
			x, tallest = x+w, max(tallest, h)
		}
		y += tallest
	}
	text, err := json.MarshalIndent(object{
		"uid": "aws-vpc-cni", "title": "Amazon VPC CNI", "tags": []string{"kubernetes", "network"}, "schemaVersion": 39,
		"editable": true, "refresh": "1m", "time": object{"from": "now-6h", "to": "now"},
		"templating": object{"list": []object{
			{"name": "datasource", "type": "datasource", "query": "prometheus"},
			variable("cluster", "awscni_eni_max, cluster", source),
			variable("instance", `awscni_eni_max{cluster=~"$cluster"}, instance`, source),
			variable("agent", `awsnodeagent_aws_ebpf_sdk_latency_ms_count{cluster=~"$cluster"}, instance`, source),
		}},
		"panels": out,
	}, "", " ")
	return append(text, '\n'), err
}

// variable lets the user choose among the values of a label: labelOf is "metric, label". Without the label, as where
// Prometheus scrapes one cluster, "All" still matches every series.
func variable(name, labelOf string, source object) object {
	query := "label_values(" + labelOf + ")"
	return object{
		"name": name, "type": "query", "datasource": source, "definition": query, "query": object{"query": query, "refId": name},
		"refresh": 2, "sort": 1, "multi": true, "includeAll": true, "allValue": ".*", "current": object{"text": "All", "value": "$__all"},
	}
}

func (p panel) grafana(source object) object {
	kind, unit, description := p.Type, p.Unit, p.Description
	if kind == "" {
		kind = "timeseries"
	}
	if unit == "" {
		unit = "short"
	}
	if p.Ours {
		description += " Upstream's daemon has no such metric."
	}
	var targets []object
	for i, t := range p.Targets {
		target := object{"refId": string(rune('A' + i)), "datasource": source, "expr": t.Expr, "legendFormat": t.Legend}
		if kind == "table" {
			target["instant"], target["format"] = true, "table"
		}
		targets = append(targets, target)
	}
	return object{
		"type": kind, "title": p.Title, "description": description, "datasource": source, "targets": targets,
		"fieldConfig": object{"defaults": object{"unit": unit, "min": 0}, "overrides": []object{}},
	}
}
