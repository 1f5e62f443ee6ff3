package api_test

import "testing"

func (c *contract) checkExchanges(t *testing.T) {
	for _, rows := range []map[string]exchange{exchanges, statisticsExchanges()} {
		for name, e := range rows {
			t.Run(name, func(t *testing.T) { c.check(t, e) })
		}
	}
}

// Of 10001 and 10002 nothing may be written here: the counts of them are in examples.
const (
	playPath    = "/v1/videos/10003/play"
	leavePath   = "/v1/videos/10004/leave"
	viewersPath = "/v1/videos/10001/viewers"
	batchPath   = "/v1/viewers?video_id=10001&video_id=10002"
	viewer      = `{"viewer_id":"u1"}`
	twoPlays    = `{"plays":[{"video_id":"10003","viewer_id":"u1"},{"video_id":"10004","viewer_id":"u2"}]}`
)

// Where the handler is more liberal or more strict than a schema can say, the document says it in these words.
const (
	saysWithoutType = "A body without a Content-Type is read as JSON"
	saysRequired    = "It is required unless a play token says it"
	saysDigits      = "It must be written in digits only"
	saysTwice       = "no field may be given twice"
	saysSurrogate   = "no string may have half of a surrogate pair"
	saysParameter   = "An unknown parameter is refused."
	saysEntry       = "In a batch that is an entry in `errors`."
	saysDots        = "An id that is `.` or `..` must be sent as `%2E` or `%2E%2E`"
)

var preflight = map[string]string{"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}

var bearerU1 = map[string]string{"Authorization": "Bearer 10003/u1"}

var exchanges = map[string]exchange{
	"play":                     {method: "POST", target: playPath, body: viewer, status: 200},
	"play by beacon":           {method: "POST", target: playPath, contentType: "text/plain;charset=UTF-8", body: viewer, status: 200},
	"play, type in capitals":   {method: "POST", target: playPath, contentType: "Application/JSON; charset=utf-8", body: viewer, status: 200},
	"play without a type":      {method: "POST", target: playPath, header: map[string]string{"Content-Type": "-"}, body: viewer, status: 200, words: saysWithoutType},
	"play from the same site":  {method: "POST", target: playPath, header: map[string]string{"Origin": "-"}, body: viewer, status: 200},
	"play, number as id":       {method: "POST", target: playPath, body: `{"viewer_id":1}`, status: 400},
	"play, no id":              {method: "POST", target: playPath, body: `{}`, status: 400, words: saysRequired},
	"play, no body":            {method: "POST", target: playPath, status: 400},
	"play, not JSON":           {method: "POST", target: playPath, body: `viewer_id=u1`, status: 400},
	"play, not UTF-8":          {method: "POST", target: playPath, body: "{\"viewer_id\":\"\xff\"}", status: 400},
	"play, two objects":        {method: "POST", target: playPath, body: viewer + viewer, status: 400},
	"play, an array":           {method: "POST", target: playPath, body: `[` + viewer + `]`, status: 400},
	"play, another field":      {method: "POST", target: playPath, body: `{"viewer_id":"u1","recorded_at":1}`, status: 400},
	"play, name in capitals":   {method: "POST", target: playPath, body: `{"Viewer_ID":"u1"}`, status: 400},
	"play, id twice":           {method: "POST", target: playPath, body: `{"viewer_id":"u1","viewer_id":"u2"}`, status: 400, words: saysTwice},
	"play, half a pair":        {method: "POST", target: playPath, body: `{"viewer_id":"\ud83d"}`, status: 400, words: saysSurrogate},
	"play, no video":           {method: "POST", target: "/v1/videos//play", body: viewer, status: 400},
	"play, dot":                {method: "POST", target: "/v1/videos/./play", body: viewer, status: 400, words: saysDots},
	"play, dots":               {method: "POST", target: "/v1/videos/../play", body: viewer, status: 400, words: saysDots},
	"play, escaped dots":       {method: "POST", target: "/v1/videos/%2E%2E/play", body: viewer, status: 200},
	"play, a form":             {method: "POST", target: playPath, contentType: "application/x-www-form-urlencoded", body: "viewer_id=u1", status: 415},
	"play, Redis down":         {server: down, method: "POST", target: playPath, body: viewer, status: 503},
	"play, preflight":          {method: "OPTIONS", target: playPath, header: preflight, status: 204},
	"play, OPTIONS":            {method: "OPTIONS", target: playPath, status: 405},
	"leave":                    {method: "POST", target: leavePath, body: viewer, status: 204},
	"leave, guarded":           {method: "POST", target: leavePath, body: `{"viewer_id":"u1","recorded_at":1700000000}`, status: 204},
	"leave, any parameter":     {method: "POST", target: leavePath + "?x=1", body: viewer, status: 204},
	"leave, no id":             {method: "POST", target: leavePath, body: `{"recorded_at":1}`, status: 400, words: saysRequired},
	"leave, with a fraction":   {method: "POST", target: leavePath, body: `{"viewer_id":"u1","recorded_at":1.0}`, status: 400, words: saysDigits},
	"leave, with an exponent":  {method: "POST", target: leavePath, body: `{"viewer_id":"u1","recorded_at":1e9}`, status: 400, words: saysDigits},
	"leave, minus zero":        {method: "POST", target: leavePath, body: `{"viewer_id":"u1","recorded_at":-0}`, status: 400, words: saysDigits},
	"leave, a form":            {method: "POST", target: leavePath, contentType: "multipart/form-data; boundary=x", body: "--x--", status: 415},
	"leave, Redis down":        {server: down, method: "POST", target: leavePath, body: viewer, status: 503},
	"leave, preflight":         {method: "OPTIONS", target: leavePath, header: preflight, status: 204},
	"leave, OPTIONS":           {method: "OPTIONS", target: leavePath, status: 405},
	"plays":                    {method: "POST", target: "/v1/plays", body: twoPlays, status: 200},
	"plays, none":              {method: "POST", target: "/v1/plays", body: `{"plays":[]}`, status: 200},
	"plays, one without ids":   {method: "POST", target: "/v1/plays", body: `{"plays":[{"video_id":"10003","viewer_id":"u1"},{}]}`, status: 200},
	"plays, one of nobody":     {method: "POST", target: "/v1/plays", body: `{"plays":[{"video_id":"10003","viewer_id":"u1"},{"video_id":"10003"}]}`, status: 200, words: saysRequired},
	"plays, all of nobody":     {method: "POST", target: "/v1/plays", body: `{"plays":[{"video_id":"10003","viewer_id":""}]}`, status: 200},
	"plays, another field":     {method: "POST", target: "/v1/plays", body: `{"plays":[{"video_id":"10003","viewer_id":"u1","at":1}]}`, status: 400},
	"plays, field beside":      {method: "POST", target: "/v1/plays", body: `{"plays":[],"at":1}`, status: 400},
	"plays, missing":           {method: "POST", target: "/v1/plays", body: `{}`, status: 400},
	"plays, a string among":    {method: "POST", target: "/v1/plays", body: `{"plays":["u1"]}`, status: 400},
	"plays, HTML":              {method: "POST", target: "/v1/plays", contentType: "text/html", body: twoPlays, status: 415},
	"plays, Redis down":        {server: down, method: "POST", target: "/v1/plays", body: twoPlays, status: 503},
	"viewers":                  {server: passed, method: "GET", target: viewersPath, status: 200},
	"viewers, no pass yet":     {method: "GET", target: viewersPath, status: 200},
	"viewers of no video":      {method: "GET", target: "/v1/videos/nobody/viewers", status: 200},
	"viewers, any parameter":   {method: "GET", target: viewersPath + "?x=1", status: 200},
	"viewers, reserved":        {method: "GET", target: "/v1/videos/count:1/viewers", status: 400},
	"viewers, Redis down":      {server: down, method: "GET", target: viewersPath, status: 503},
	"viewers, HEAD":            {server: passed, method: "HEAD", target: viewersPath, status: 200},
	"viewers, HEAD, reserved":  {method: "HEAD", target: "/v1/videos/count:1/viewers", status: 400},
	"viewers, HEAD, down":      {server: down, method: "HEAD", target: viewersPath, status: 503},
	"viewers, preflight":       {method: "OPTIONS", target: viewersPath, header: preflight, status: 204},
	"viewers, OPTIONS":         {method: "OPTIONS", target: viewersPath, status: 405},
	"batch":                    {server: passed, method: "GET", target: batchPath, status: 200},
	"batch, no pass yet":       {method: "GET", target: batchPath, status: 200},
	"batch, twice the same":    {method: "GET", target: batchPath + "&video_id=10001", status: 200},
	"batch, none":              {method: "GET", target: "/v1/viewers", status: 400},
	"batch, an empty id":       {method: "GET", target: "/v1/viewers?video_id=", status: 400},
	"batch, an empty id among": {method: "GET", target: batchPath + "&video_id=", status: 400},
	"batch, no value":          {method: "GET", target: batchPath + "&video_id", status: 400},
	"batch, another parameter": {method: "GET", target: batchPath + "&x=1", status: 400, words: saysParameter},
	"batch, Redis down":        {server: down, method: "GET", target: batchPath, status: 503},
	"batch, HEAD":              {server: passed, method: "HEAD", target: batchPath, status: 200},
	"batch, HEAD, none":        {method: "HEAD", target: "/v1/viewers", status: 400},
	"batch, HEAD, down":        {server: down, method: "HEAD", target: batchPath, status: 503},
	"batch, preflight":         {method: "OPTIONS", target: batchPath, header: preflight, status: 204},
	"batch, OPTIONS":           {method: "OPTIONS", target: batchPath, status: 405},
	"document":                 {method: "GET", target: "/openapi.yaml", status: 200},
	"document, Redis down":     {server: down, method: "GET", target: "/openapi.yaml", status: 200},
	"document, HEAD":           {method: "HEAD", target: "/openapi.yaml", status: 200},
	"document, preflight":      {method: "OPTIONS", target: "/openapi.yaml", header: preflight, status: 204},
	"document, OPTIONS":        {method: "OPTIONS", target: "/openapi.yaml", status: 405},
	"play, too fast":           {server: limited, method: "POST", target: playPath, body: viewer, status: 429},
	"play, video full":         {server: full, method: "POST", target: "/v1/videos/10001/play", body: `{"viewer_id":"u2"}`, status: 429},
	"play, video full of u1":   {server: full, method: "POST", target: "/v1/videos/10001/play", body: viewer, status: 200},
	"play, token not needed":   {method: "POST", target: playPath, body: `{"viewer_id":"u1","token":"x"}`, status: 200},
	"play, token in header":    {server: signed, method: "POST", target: playPath, header: bearerU1, body: `{}`, status: 200},
	"play, token in body":      {server: signed, method: "POST", target: playPath, body: `{"token":"10003/u1"}`, status: 200},
	"play, empty viewer":       {server: signed, method: "POST", target: playPath, body: `{"viewer_id":"","token":"10003/u1"}`, status: 400},
	"play, no token":           {server: signed, method: "POST", target: playPath, body: viewer, status: 401},
	"play, another video's":    {server: signed, method: "POST", target: "/v1/videos/10004/play", header: bearerU1, body: viewer, status: 403},
	"play, another viewer's":   {server: signed, method: "POST", target: playPath, header: bearerU1, body: `{"viewer_id":"u2"}`, status: 403},
	"leave, too fast":          {server: limited, method: "POST", target: leavePath, body: viewer, status: 429},
	"leave, token in body":     {server: signed, method: "POST", target: leavePath, body: `{"token":"10004/u1","recorded_at":1}`, status: 204},
	"leave, bad token":         {server: signed, method: "POST", target: leavePath, body: `{"token":"x"}`, status: 401},
	"leave, another video's":   {server: signed, method: "POST", target: leavePath, body: `{"token":"10003/u1"}`, status: 403},
	"plays, too fast":          {server: limited, method: "POST", target: "/v1/plays", body: twoPlays, status: 429},
	"plays, beyond the burst":  {server: narrow, method: "POST", target: "/v1/plays", body: twoPlays, status: 429},
	"plays, one is too many":   {server: full, method: "POST", target: "/v1/plays", body: `{"plays":[{"video_id":"10001","viewer_id":"u2"}]}`, status: 200, words: "in a batch that is an entry in `errors`."},
	"plays, token each":        {server: signed, method: "POST", target: "/v1/plays", body: `{"plays":[{"video_id":"10003","token":"10003/u1"},{"video_id":"10004","token":"10004/u1"}]}`, status: 200},
	"plays, empty viewer":      {server: signed, method: "POST", target: "/v1/plays", body: `{"plays":[{"video_id":"10003","viewer_id":"","token":"10003/u1"}]}`, status: 200},
	"plays, token of one":      {server: signed, method: "POST", target: "/v1/plays", header: bearerU1, body: twoPlays, status: 200, words: saysEntry},
	"no such path":             {method: "GET", target: "/v1/nothing", status: 404},
	"trailing slash":           {method: "POST", target: playPath + "/", body: viewer, status: 404},
	"slash in an id":           {method: "POST", target: "/v1/videos/a/b/play", body: viewer, status: 404},
	"no such path, HEAD":       {method: "HEAD", target: "/v1/nothing", status: 404},
	"no such path, preflight":  {method: "OPTIONS", target: "/v1/nothing", status: 404},
}
