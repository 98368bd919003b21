// Maps everyday questions to the words of listings, written by hand for this program: a line is a phrase of one to
// three words, and its topic. A star matches any ending. Words of trades, not of any listing.
export const relationTable = `
acapella, a cappella, vocals only, remove vocals, isolate vocals, karaoke version > vocal stem separation instrumental
voice clon*, clone voice, copy voice > voice synthesis cloning speech
read aloud, read out loud, text voice, voiceover, narrat* > speech synthesis voice tts
dictat*, write down said, transcri* > transcription speech transcript audio
meeting notes, call summary, minutes meeting > transcription meeting summary
memecoin, meme coin, shitcoin, altcoin, new coin > token crypto
rug pull, rugpull, honeypot, scam token > token risk scam security
gas fee, gas price, transaction fee > gas fee network
swap, dex, amm, liquidity pool > swap liquidity exchange
airdrop, eligib* > eligibility
nft > nft collection floor
staking, yield farming, apy > yield staking rewards
portfolio, net worth, my holdings > portfolio balance holdings
candles, candlestick, ohlc > candles ohlcv price history
fear greed, market mood > sentiment market
money laundering, dirty money, kyc, aml > compliance sanctions screening
blacklist*, sanction* > sanctions screening
exchange rate, convert money, currency convert* > currency exchange rates forex
share price, stock price, ticker > stock quote equity market
earnings, quarterly results, balance sheet > financial company filings
interest rate, mortgage, home loan > interest mortgage loan rate
inflation, cost living > inflation economic consumer price
tax*, vat > tax vat
invoice, bill, receipt > invoice receipt
bank account number, iban > iban bank
salary, earn, wage > salary compensation
credit score, creditworth* > credit score
will it rain, umbrella, sunny, snow* > weather forecast temperature precipitation
storm, hurricane, tornado > weather alerts storm
air quality, smog, pollution > air quality pollution
pollen, hay fever, allergy > pollen allergy
sunrise, sunset, daylight > sun astronomy sunrise
earthquake, quake, tremor > earthquake seismic
tide, high water > tides marine
northern lights, aurora > aurora geomagnetic
planets, night sky > astronomy sky planets
flood* > flood river water level
wildfire, forest fire > fire wildfire
electricity price, power price, kwh > electricity energy price
petrol, gas station, gasoline, diesel > fuel price station
charge car, recharge, ev, electric car > charging station ev
traffic, jam, commute > traffic road route
shortest way, directions, best route, how far > route directions distance
where am i, coordinates, latitude, address coordinates > geocoding location coordinates
what address, point address > reverse geocoding address
zip code, postcode, postal code > postal code address
time zone > timezone time
flight, plane, airplane ticket > flight airline
train, bus, subway, metro > transit departures timetable train
hotel, overnight > hotel accommodation booking
rent flat, apartment, home value > property real estate rental
holiday, vacation, trip > travel trip
passport, visa > visa travel entry
parking > parking
bicycle, bike > bike cycling
package, parcel > parcel tracking shipment delivery
postage, shipping cost > shipping rates parcel
customs, tariff > customs tariff duty
vessel > vessel ship position
truck, lorry, van > truck freight
license plate, number plate > vehicle registration plate
used car, vin > vehicle vin history
hungry, place eat, restaurant > restaurant table dining
recipe, cook*, leftovers > recipe ingredients cooking
calories, healthy eat, diet, nutrition > nutrition calories food
wine, beer, cocktail > wine drink pairing
barcode, scan product > barcode product
cheapest, best price, price drop > price comparison
coupon, discount > coupon deals
gift, present > gift ideas
shoes, sneakers, clothes, outfit > fashion clothing
feel sick, sick, hurts, symptom* > symptom health medical
pills, medication, drug > drug medication interaction
pharmacy, chemist > pharmacy
blood test, lab results > lab blood results
doctor, physician > doctor medical
medic*, symptom* > medical medication symptom
electric* > electricity energy
valid*, verif*, confirm* > verification validation check
audio, recording > audio transcription
movie, music > film music
dog, cat, kitten, pet > pet animal veterinary
workout, gym, exercise > fitness workout training
sleep, insomnia > sleep
therapy, sad, anxious, depressed > mental health
pregnan*, baby > baby pregnancy
what plant, flower, houseplant, leaf > plant identification botany
bird, birdsong > bird species
mushroom, fungus > mushroom species
insect, bug bit > insect species
crop, harvest, farm > agriculture crop soil
deepfake, ai generated > detection deepfake generated
draw, paint, picture of, make image, illustration, artwork > image generation picture
sharper, blurry, upscale, enhance > image upscale resolution
cut out, transparent background, remove background > background removal image
describe photo > image recognition vision objects
blur faces > face anonymize blur
recognize face, same person > face verification
logo, icon > logo icon design
make video, video from text, animate > video generation clip
subtitles, captions > subtitles captions video
dub* > dubbing video voice
song, compose, jingle, beat > music generation
what song, which song > music recognition audio
lyrics > lyrics song
clean noise, background noise > audio noise
read text picture, scan, handwrit* > ocr text extraction
pdf word, convert pdf, pdf text > pdf document conversion
sign document, signature > signature document
summar*, too long read, tldr > summary summarization text
rephrase, reword, rewrite, rewording > paraphrase rewriting text
spelling, grammar, proofread > grammar spelling correction
translat*, in other language, into german, into french > translation language
which language, what language > language detection
tone > sentiment analysis
insult, hate, swear, toxic, nsfw > moderation content toxicity
plagiar* > plagiarism similarity
chatbot, gpt, chat with, language model, llm, ask ai > language model chat completion
vector representation, embed text > embedding vector
remember, agent memory > memory storage
fill form, click through > browser automation
captcha > captcha
scrape, crawl, page content, website text > scraping page crawl extraction
screenshot, picture of website > screenshot page
website up, outage > uptime monitoring status
domain owner > whois domain
domain free, domain available > domain availability
ip address, where ip > ip geolocation
vpn, proxy > proxy residential
phishing, safe link, malicious link, virus > malware phishing url threat
vulnerab*, cve, hacked > vulnerability security
password leaked, data breach, pwned > breach password leak
short link, shorten link > url shortener
qr, scan code > qr code
temporary email, throwaway > disposable email inbox
email real, check email, email exist* > email verification validation
contact details > email lead contact
text message, sms > sms message phone
phone number valid, caller > phone number lookup
send mail, newsletter > email sending
push notification, notify > notification
run code, execute script > code execution sandbox
review code, bugs in, pull request > code review
sql, query database > sql database
regex > regular expression
convert file, spreadsheet, excel > csv spreadsheet conversion
store file, pin file, upload file > storage upload ipfs file
random number, coin flip, dice > random number
calculat*, equation, math, solve > math calculator
chart, graph, plot > chart visualization
map picture, satellite, aerial > satellite imagery map
elevation, altitude > elevation terrain
who runs company, director, company registered > company registry business
competitor*, startup > company business firmographic
job, hiring > job vacancy
resume, cv > resume
news > news headlines
twitter > posts social
influencer, followers > social followers profile
video transcript > transcript video
hashtag, trending > trends social
keyword, rank google, seo > search keyword seo
web search, look up online > web search results
scientific, literature, papers, study > academic research papers
law, legal, contract > legal law contract
patent > patent
court, lawsuit > court case legal
book, isbn > book
movie, series, film > movie film streaming
game score, match result > sports scores results
odds, bet*, bookmaker > odds betting prediction
concert, tickets, gig > event concert tickets
horoscope, zodiac, star sign > astrology horoscope
dream* > dream interpretation
family tree, ancestors > genealogy
quiz, homework, learn > education learning
museum, painting > museum art
public holiday, day off > holidays calendar
appointment, book slot, schedule > booking appointment calendar
solar panel, photovoltaic > solar energy
carbon, footprint, climate > carbon emissions
recall > product recall
crime, safe area > crime safety
school > school education
`
