package root

import (
	"strings"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
)

// What --namespace does with a command, for its help.
const (
	ofAddresses   = "With -n NAMESPACE only the addresses of that namespace's pods are shown."
	ofPods        = "With -n NAMESPACE only that namespace's pods are shown."
	ofAllocations = "With -n NAMESPACE only the allocations of that namespace's pods are shown."
	ofEvents      = `With -n NAMESPACE only events of that namespace are shown, as with kubectl, and of the daemons'
events those about its pods.`
	ofTrunks = `With -n NAMESPACE only that namespace's pods are listed and counted as waiting. Branch ENIs in
use and cooling are always those of all pods.`
	ofNames   = "NAMESPACE defaults to -n, else to the namespace of kubectl's current context."
	ofScreens = `With -n NAMESPACE the screen of pods shows that namespace's at first, and :pod NAME looks there
first.`
)

// namespaced says, by command, what --namespace selects. All other commands refuse it, so that
// none accepts and ignores it.
var namespaced = map[string]string{
	"tui": ofScreens, "replay": ofScreens,
	"":            "", // opens the screens
	"config view": "", // lists it
	"pod":         ofNames, "doctor pod": ofNames,
	"events": ofEvents, "ips": ofAddresses, "trunks": ofTrunks, "pods": ofPods,
	"node ips": ofAddresses, "node pods": ofPods, "node checkpoint": ofAllocations,
	"local ips": ofAddresses, "local pods": ofPods, "local checkpoint": ofAllocations,
}

// nameOf returns the name of a command without that of the tool.
func nameOf(cmd *cobra.Command) string {
	name := strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().CommandPath()))
	return strings.TrimPrefix(name, getCommand+" ")
}

// checkNamespace refuses --namespace for the commands that do not select by it.
func checkNamespace(f *cli.Factory) cli.Step {
	return func(cmd *cobra.Command) error {
		if _, ok := namespaced[nameOf(cmd)]; ok {
			return nil
		}
		return f.RefuseNamespace(cmd)
	}
}

// describeNamespace adds to the help of commands what --namespace does.
func describeNamespace(cmd *cobra.Command) {
	if text := namespaced[nameOf(cmd)]; text != "" {
		cmd.Long += "\n\n" + text
	}
	for _, sub := range cmd.Commands() {
		describeNamespace(sub)
	}
}
