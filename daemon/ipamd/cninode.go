package ipamd

import (
	"context"
	"log/slog"
	"time"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/backoff"
	"cnictl/daemon/cluster"
	"cnictl/daemon/keeper"
)

// Times of asking for a trunk: the CNINode may be made after the node, by a controller
// that may be down.
const (
	trunkAskFirst = time.Second
	trunkAskMost  = 30 * time.Second
	// trunkAskEvery is how often a request that was taken is looked at again.
	trunkAskEvery = 5 * time.Minute
)

func (a *kubernetes) cniNodeChanged(ctx context.Context, n cluster.CNINode, there bool) {
	if there && n.Trunk != "" {
		_ = a.owner.post(ctx, keeper.TrunkHinted{Attached: true}) // only fails when ctx ends
	}
	signal(a.features)
}

// askForTrunk writes into the CNINode what the VPC resource controller is to do, for as
// long as it takes: it attaches a trunk ENI to nodes that ask for it
// (spec/security-groups-for-pods.md §10).
func (a *kubernetes) askForTrunk(ctx context.Context) {
	var clock backoff.Clock
	asked, full, failing := false, false, false
	for {
		wait := trunkAskEvery
		want, slot := a.trunkFeatures()
		switch {
		case len(want) == 0: // not known yet
			wait = trunkAskFirst
		case !slot:
			if !full {
				a.log.Warn(textNoTrunkSlot)
			}
			wait = trunkAskMost
		default:
			if err := a.AddFeatures(ctx, want...); err != nil {
				now := time.Now()
				clock.Fail(now, now, "", trunkAskFirst, trunkAskMost, chance)
				wait = time.Until(clock.Until)
				if !failing && ctx.Err() == nil {
					a.log.Warn("trunk ENI not asked for, will be tried again", slog.Any(logline.KeyError, err))
				}
				failing = true
				break
			}
			clock, failing = backoff.Clock{}, false
			if !asked {
				asked = true
				a.log.Info("trunk ENI asked for in the CNINode", slog.Int(logline.KeyCount, len(want)))
				_ = a.owner.post(ctx, keeper.TrunkHinted{}) // only fails when ctx ends
			}
		}
		full = len(want) > 0 && !slot
		timer := time.NewTimer(wait)
		select {
		case <-a.features:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// trunkFeatures are the features that the node wants, all in one patch: a controller that
// saw the trunk asked for before the ENIConfig would make it in the wrong subnet.
func (a *kubernetes) trunkFeatures() (want []cluster.Feature, slot bool) {
	type answer struct {
		wanted, slot bool
		eniConfig    string
	}
	got, ok := ask(a.owner, func(k *keeper.Keeper, _ time.Time) answer {
		wanted, slot := k.TrunkWanted()
		return answer{wanted, slot, k.ENIConfigName()}
	})
	if !ok || !got.wanted {
		return nil, false
	}
	if a.config.CustomNetworking {
		switch got.eniConfig {
		case "":
			return nil, false
		case "default": // the original names it in no CNINode either
		default:
			want = append(want, cluster.Feature{Name: cluster.FeatureCustomNetworking, Value: got.eniConfig})
		}
	}
	return append(want, cluster.Feature{Name: cluster.FeatureSecurityGroupsForPods}), got.slot
}
