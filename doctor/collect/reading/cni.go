package reading

import (
	"encoding/json"
	"strings"

	"cnictl/doctor/evidence"
)

// CNIConf reads a file of the CNI configuration directory: a list of plugins, or one plugin.
func CNIConf(file string, data []byte) evidence.CNIConf {
	out := evidence.CNIConf{File: file, Types: []string{}}
	var conf struct {
		Name    string `json:"name"`
		Type    string `json:"type"`
		Plugins []struct {
			Type string `json:"type"`
		} `json:"plugins"`
	}
	if json.Unmarshal(data, &conf) != nil {
		return out
	}
	if conf.Type != "" {
		out.Types = append(out.Types, conf.Type)
	}
	out.Valid = conf.Name != ""
	for _, p := range conf.Plugins {
		out.Types = append(out.Types, p.Type)
		out.Valid = out.Valid && p.Type != ""
	}
	out.Valid = out.Valid && len(out.Types) > 0
	return out
}

// PluginVersion finds the version in the output of a CNI plugin that is started by hand, nil if
// there is none.
func PluginVersion(printed string) *string {
	line, _, _ := strings.Cut(printed, "\n")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return nil
	}
	version := fields[len(fields)-1]
	if _, ok := evidence.ParseVersion(version); !ok {
		return nil
	}
	return &version
}
