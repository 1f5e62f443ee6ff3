package api_test

import "maps"

const saysOthers = "no other parameter is taken, and none twice"

// statisticsExchanges are those of the routes for statistics: what all of them
// have in common, and then what they have not.
func statisticsExchanges() map[string]exchange {
	rows := maps.Clone(statisticsOwn)
	for name, target := range map[string]string{
		"online":           "/v1/online",
		"uniques":          "/v1/uniques",
		"uniques of video": "/v1/videos/10001/uniques",
		"plays so far":     "/v1/plays",
		"plays of video":   "/v1/videos/10001/plays",
		"top":              "/v1/top",
		"history":          "/v1/history",
		"history of video": "/v1/videos/10001/history",
		"stats of video":   "/v1/videos/10001/stats",
	} {
		for _, method := range []string{"GET", "HEAD"} {
			rows[name+", "+method] = exchange{server: passed, method: method, target: target, status: 200}
			rows[name+", no pass yet, "+method] = exchange{method: method, target: target, status: 200}
			rows[name+", another parameter, "+method] = exchange{method: method, target: target + "?x=1", status: 400, words: saysOthers}
			rows[name+", off, "+method] = exchange{server: off, method: method, target: target, status: 404, words: "or the statistic is off"}
			rows[name+", Redis down, "+method] = exchange{server: down, method: method, target: target, status: 503}
		}
		rows[name+", preflight"] = exchange{method: "OPTIONS", target: target, header: preflight, status: 204}
		rows[name+", OPTIONS"] = exchange{method: "OPTIONS", target: target, status: 405}
	}
	return rows
}

const onlineLeave = "/v1/online/leave"

var statisticsOwn = map[string]exchange{
	"heartbeat":                         {method: "POST", target: "/v1/online", body: viewer, status: 200},
	"heartbeat by beacon":               {method: "POST", target: "/v1/online", contentType: "text/plain", body: viewer, status: 200},
	"heartbeat of nobody":               {method: "POST", target: "/v1/online", body: `{}`, status: 400, words: saysRequired},
	"heartbeat, another field":          {method: "POST", target: "/v1/online", body: `{"viewer_id":"u1","video_id":"x"}`, status: 400},
	"heartbeat, a form":                 {method: "POST", target: "/v1/online", contentType: "multipart/form-data; boundary=x", body: "--x--", status: 415},
	"heartbeat, too fast":               {server: limited, method: "POST", target: "/v1/online", body: viewer, status: 429},
	"heartbeat, Redis down":             {server: down, method: "POST", target: "/v1/online", body: viewer, status: 503},
	"heartbeat, off":                    {server: off, method: "POST", target: "/v1/online", body: viewer, status: 404, words: "or the statistic is off"},
	"heartbeat, token of any video":     {server: signed, method: "POST", target: "/v1/online", header: bearerU1, body: `{}`, status: 200},
	"heartbeat, token in body":          {server: signed, method: "POST", target: "/v1/online", body: `{"token":"10004/u1","viewer_id":"u1"}`, status: 200},
	"heartbeat, no token":               {server: signed, method: "POST", target: "/v1/online", body: viewer, status: 401},
	"heartbeat, another viewer's":       {server: signed, method: "POST", target: "/v1/online", header: bearerU1, body: `{"viewer_id":"u2"}`, status: 403},
	"offline":                           {method: "POST", target: onlineLeave, body: viewer, status: 204},
	"offline, guarded":                  {method: "POST", target: onlineLeave, body: `{"viewer_id":"u1","recorded_at":1700000000}`, status: 204},
	"offline, nobody":                   {method: "POST", target: onlineLeave, body: `{}`, status: 400, words: saysRequired},
	"offline, with a fraction":          {method: "POST", target: onlineLeave, body: `{"viewer_id":"u1","recorded_at":1.0}`, status: 400, words: saysDigits},
	"offline, a form":                   {method: "POST", target: onlineLeave, contentType: "multipart/form-data; boundary=x", body: "--x--", status: 415},
	"offline, too fast":                 {server: limited, method: "POST", target: onlineLeave, body: viewer, status: 429},
	"offline, Redis down":               {server: down, method: "POST", target: onlineLeave, body: viewer, status: 503},
	"offline, off":                      {server: off, method: "POST", target: onlineLeave, body: viewer, status: 404, words: "or the statistic is off"},
	"offline, token":                    {server: signed, method: "POST", target: onlineLeave, header: bearerU1, body: `{}`, status: 204},
	"offline, no token":                 {server: signed, method: "POST", target: onlineLeave, body: viewer, status: 401},
	"offline, another viewer's":         {server: signed, method: "POST", target: onlineLeave, header: bearerU1, body: `{"viewer_id":"u2"}`, status: 403},
	"offline, preflight":                {method: "OPTIONS", target: onlineLeave, header: preflight, status: 204},
	"offline, OPTIONS":                  {method: "OPTIONS", target: onlineLeave, status: 405},
	"uniques of 7 days":                 {server: passed, method: "GET", target: "/v1/uniques?last=7d", status: 200},
	"uniques of 8 days":                 {server: passed, method: "GET", target: "/v1/uniques?last=8d", status: 400},
	"uniques of 168 hours":              {server: passed, method: "GET", target: "/v1/videos/10001/uniques?last=168h", status: 200},
	"uniques of 169 hours":              {server: passed, method: "GET", target: "/v1/videos/10001/uniques?last=169h", status: 400},
	"uniques of 0 hours":                {server: passed, method: "GET", target: "/v1/videos/10001/uniques?last=0h", status: 400},
	"uniques of a week":                 {server: passed, method: "GET", target: "/v1/uniques?last=1w", status: 400},
	"uniques of an empty time":          {server: passed, method: "GET", target: "/v1/uniques?last=", status: 400},
	"uniques, last twice":               {server: passed, method: "GET", target: "/v1/uniques?last=1h&last=2h", status: 400, words: saysOthers},
	"plays per hour":                    {server: passed, method: "GET", target: "/v1/plays?per=hour&last=3h", status: 200},
	"plays per day":                     {server: passed, method: "GET", target: "/v1/videos/10001/plays?per=day&last=30d", status: 200},
	"plays per week":                    {server: passed, method: "GET", target: "/v1/videos/10001/plays?per=week&last=366d", status: 200},
	"plays per month":                   {server: passed, method: "GET", target: "/v1/plays?per=month&last=366d", status: 200},
	"plays per month, 367 days":         {server: passed, method: "GET", target: "/v1/plays?per=month&last=367d", status: 400},
	"plays per day, in hours":           {server: passed, method: "GET", target: "/v1/plays?per=day&last=24h", status: 400, words: "hours for `per=hour` alone"},
	"plays per hour of 8 days":          {server: passed, method: "GET", target: "/v1/plays?per=hour&last=8d", status: 400, words: "up to 7 days"},
	"plays per year":                    {server: passed, method: "GET", target: "/v1/plays?per=year", status: 400},
	"top of one":                        {server: passed, method: "GET", target: "/v1/top?limit=1", status: 200},
	"top of none":                       {server: passed, method: "GET", target: "/v1/top?limit=0", status: 400},
	"top of 1000":                       {server: passed, method: "GET", target: "/v1/top?limit=1000", status: 200},
	"top of 1001":                       {server: passed, method: "GET", target: "/v1/top?limit=1001", status: 400},
	"top of some":                       {server: passed, method: "GET", target: "/v1/top?limit=some", status: 400},
	"history of 6 hours":                {server: passed, method: "GET", target: "/v1/history?last=6h", status: 200},
	"history of a day":                  {server: passed, method: "GET", target: "/v1/videos/10001/history?last=1d", status: 200},
	"history of more than is kept":      {server: passed, method: "GET", target: "/v1/history?last=25h", status: 400, words: "not more than is kept"},
	"history of a week":                 {server: passed, method: "GET", target: "/v1/history?last=1w", status: 400},
	"stats of a reserved id":            {method: "GET", target: "/v1/videos/count:1/stats", status: 400},
	"stats of a video nobody watched":   {method: "GET", target: "/v1/videos/nobody/stats", status: 200},
	"uniques of a reserved id":          {method: "GET", target: "/v1/videos/count:1/uniques", status: 400},
	"history of a reserved id, HEAD":    {method: "HEAD", target: "/v1/videos/count:1/history", status: 400},
	"plays of a reserved id, in a HEAD": {method: "HEAD", target: "/v1/videos/count:1/plays", status: 400},
}
