package compare

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Price is the price of an instance per hour, in USD.
type Price struct {
	Hourly float64
	Spot   float64 // 0 if not given
}

// Prices are the prices of one region, by instance type.
type Prices map[string]Price

// ReadPrices reads the prices of a region from CSV with the columns region, type,
// hourly_usd and optionally spot_usd, in any order. region may be empty if the file has
// only one. Errors name the line and the field.
func ReadPrices(r io.Reader, region string) (Prices, error) {
	in := csv.NewReader(r)
	in.TrimLeadingSpace = true
	head, err := in.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("line 1: the file is empty: want the header region,type,hourly_usd")
	}
	if err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	head = slices.Clone(head)
	head[0] = strings.TrimPrefix(head[0], "\ufeff")
	for n, name := range head {
		if !slices.Contains([]string{"region", "type", "hourly_usd", "spot_usd"}, name) || slices.Contains(head[:n], name) {
			return nil, fmt.Errorf("line 1: field %d is %q: want region,type,hourly_usd and optionally spot_usd, once each", n+1, name)
		}
	}
	for _, name := range []string{"region", "type", "hourly_usd"} {
		if !slices.Contains(head, name) {
			return nil, fmt.Errorf("line 1: field %s is missing", name)
		}
	}
	byRegion := map[string]Prices{}
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			return choose(byRegion, region)
		}
		if err != nil {
			return nil, err // it names the line
		}
		line, _ := in.FieldPos(0)
		if err := take(byRegion, head, fields); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// take adds the prices of a line.
func take(byRegion map[string]Prices, head, fields []string) error {
	var p Price
	var region, name string
	for n, value := range fields {
		value = strings.TrimSpace(value)
		switch head[n] {
		case "region":
			region = value
		case "type":
			name = value
		default:
			to := &p.Hourly
			if head[n] == "spot_usd" {
				if to = &p.Spot; value == "" {
					continue
				}
			}
			usd, err := strconv.ParseFloat(value, 64)
			if err != nil || !(usd > 0) || math.IsInf(usd, 0) {
				return fmt.Errorf("%s is %q: want USD per hour, above 0", head[n], value)
			}
			*to = usd
		}
	}
	if region == "" || name == "" {
		return fmt.Errorf("%s is empty", map[bool]string{true: "region", false: "type"}[region == ""])
	}
	if byRegion[region] == nil {
		byRegion[region] = Prices{}
	}
	if _, twice := byRegion[region][name]; twice {
		return fmt.Errorf("type %q of region %q is given twice", name, region)
	}
	byRegion[region][name] = p
	return nil
}

func choose(byRegion map[string]Prices, region string) (Prices, error) {
	regions := make([]string, 0, len(byRegion))
	for r := range byRegion {
		regions = append(regions, r)
	}
	slices.Sort(regions)
	switch {
	case len(regions) == 0:
		return nil, errors.New("line 2: there is no price")
	case region == "" && len(regions) == 1:
		region = regions[0]
	case region == "":
		return nil, fmt.Errorf("field region: the file has several (%s): give --region", strings.Join(regions, ", "))
	case byRegion[region] == nil:
		return nil, fmt.Errorf("field region: no price for %q: the file has %s", region, strings.Join(regions, ", "))
	}
	return byRegion[region], nil
}

// matches reports whether a pattern such as m7g.* matches a type.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
