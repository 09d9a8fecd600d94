// Chained is a plugin that follows aws-cni in the tests' lists. It is
// built on the CNI library's own skeleton: it passes the previous result on with one
// more interface, as egress-cni does, and at CHECK expects that interface back.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
)

// linkName is the interface that the plugin pretends to have created.
const linkName = "chained0"

func main() {
	skel.PluginMainFuncs(skel.CNIFuncs{Add: add, Check: check, Del: nothing, GC: nothing, Status: nothing}, version.All, "chained")
}

func nothing(*skel.CmdArgs) error { return nil }

// previous returns the result of the plugin before this one, and the version in which this
// plugin must print its result.
func previous(stdin []byte) (*types100.Result, string, error) {
	var conf types.PluginConf
	if err := json.Unmarshal(stdin, &conf); err != nil {
		return nil, "", err
	}
	if err := version.ParsePrevResult(&conf); err != nil {
		return nil, "", err
	}
	if conf.PrevResult == nil {
		return nil, "", errors.New("chained: there is no previous result")
	}
	result, err := types100.NewResultFromResult(conf.PrevResult)
	return result, conf.CNIVersion, err
}

func add(args *skel.CmdArgs) error {
	result, confVersion, err := previous(args.StdinData)
	if err != nil {
		return err
	}
	result.Interfaces = append(result.Interfaces, &types100.Interface{Name: linkName, Mac: "02:00:00:00:00:01", Sandbox: args.Netns})
	return types.PrintResult(result, confVersion)
}

func check(args *skel.CmdArgs) error {
	result, _, err := previous(args.StdinData)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(result.Interfaces, func(i *types100.Interface) bool { return i.Name == linkName }) {
		return fmt.Errorf("chained: %s is not in the previous result", linkName)
	}
	return nil
}
