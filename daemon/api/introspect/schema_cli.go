package introspect

import (
	"embed"
	"encoding/json"
	"slices"
)

// Documents that cnictl makes have schemas too. No daemon serves them: they are apart,
// so that a daemon need not carry them.
//
//go:embed schema/cli/*.json
var cliSchemaFiles embed.FS

// CLIKinds are the documents of cnictl with a schema, by kind.
func CLIKinds() []string {
	return []string{
		KindAddressList, KindCandidateList, KindCapacityComparison, KindCapacityForecastList, KindCapacityRecommendation, KindCapacityRefresh, KindCapacitySubnetList, KindCapacityTypeList, KindCapacityWhatIfList, KindCause, KindCauseList, KindDoctorReport, KindENIList, KindEventList, KindFleet, KindLogList, KindCheckpoint, KindNode, KindNodeList,
		KindMetrics, KindPodList, KindNodeSettingList, KindPlanComparison, KindPodReport, KindRateList, KindRecording,
		KindSettings, KindSubnetList, KindSubnetMap, KindTrunkList, KindVersion,
	}
}

// CLISchema is the JSON Schema of a kind of documents of cnictl.
func CLISchema(kind string) (json.RawMessage, bool) {
	if !slices.Contains(CLIKinds(), kind) {
		return nil, false
	}
	b, err := cliSchemaFiles.ReadFile("schema/cli/" + kind + ".json")
	return b, err == nil
}
