//go:build nightly

package e2e_test

import "cnictl/daemon/api/crashpoint"

func init() {
	everyScene = true
	daemonScenes = append(daemonScenes, []*scene{
		{name: "ADD over gRPC", env: full, pods: 3, operation: (*stage).grpcAdd, rest: (*stage).finishAdd, recoveries: addRecoveries},
		{name: "DEL over gRPC", env: full, pods: 4, operation: (*stage).grpcDel, rest: (*stage).finishDel, recoveries: map[string]recovery{
			"removed":   {down: (*stage).deleteAgain},
			"DEL again": {down: (*stage).tearDown, up: (*stage).deleteAgain, young: true},
		}},
		{name: "assign addresses", env: env{"WARM_IP_TARGET": "2", "CLUSTER_NAME": "blue"}, before: env{"WARM_IP_TARGET": "1", "CLUSTER_NAME": ""}, pods: 1},
		{name: "assign prefixes", env: env{"ENABLE_PREFIX_DELEGATION": "true", "WARM_PREFIX_TARGET": "2"}, before: env{"WARM_PREFIX_TARGET": "1"}, pods: 1},
		{name: "release addresses", env: env{"WARM_IP_TARGET": "1"}, before: env{"WARM_IP_TARGET": "2"}, pods: 1},
		{name: "release prefixes", env: env{"ENABLE_PREFIX_DELEGATION": "true", "WARM_PREFIX_TARGET": "1"}, before: env{"WARM_PREFIX_TARGET": "2"}, pods: 1},
		{name: "detach", env: env{"MAX_ENI": "2", "WARM_IP_TARGET": "1"}, before: env{"WARM_IP_TARGET": "", "WARM_ENI_TARGET": "2"}, pods: 2, resting: []crashpoint.Point{
			crashpoint.BeforeDetachENI, crashpoint.AfterDetachENI, crashpoint.BeforeENITearDown, crashpoint.AfterENITearDown,
			crashpoint.BeforeBookDetachENI, crashpoint.AfterBookDetachENI, crashpoint.BeforeDeleteENI, crashpoint.AfterDeleteENI,
		}},
	}...)
	pluginScenes = append(pluginScenes, []*act{
		{name: "plugin ADD again", prepare: (*stage).halfAdded, command: "ADD", recoveries: pluginAddRecoveries},
		{name: "plugin ADD beside an older sandbox", prepare: (*stage).olderSandbox, command: "ADD", recoveries: pluginAddRecoveries},
		{name: "plugin ADD that fails", prepare: (*stage).badSandbox, command: "ADD", fails: true, recoveries: map[string]func(s *stage){
			"new sandbox": pluginAddRecoveries["new sandbox"],
		}},
	}...)
}
