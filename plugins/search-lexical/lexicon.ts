// Words of Spanish, Russian and Japanese in English, written by hand for this program: a line is the English of
// listings, then its equivalents in each of the three languages. Words of trades and of everyday life, not of any
// listing. A star matches any ending; a `~` before a word marks a word that English has too, and it is read as Spanish
// only next to other Spanish. Spanish words are without diacritics. `translations.ts` reads it.
export const lexicon = `
weather forecast > tiempo, clima, meteorologia, pronostico > погод*, прогноз*, метео* > 天気, 天候, 気象, 予報
rain precipitation > lluvia, llover, llueve > дожд*, осадк* > 雨, 降水, 雨量
snow > nieve, nevada > снег*, снеж* > 雪, 積雪
ski > esqui, esquiar > лыж*, горнолыж* > スキー, スノーボード
temperature > temperatura, grados > температур*, градус* > 気温, 温度
wind > viento > ветер, ветра > 風, 風速
storm > tormenta, huracan* > шторм*, ураган*, гроза, грозы > 嵐, 台風
lightning > rayos, relampago > молни* > 雷, 落雷
flood > inundacion, crecida > наводнен*, паводк* > 洪水, 浸水, 水害
river water level > rio, caudal > река, реки, реке > 河川, 川, 水位
earthquake > terremoto, sismo > землетряс*, сейсм* > 地震, 震度
volcano > volcan, volcanes > вулкан* > 火山, 噴火
tide > marea > прилив*, отлив* > 潮, 潮汐, 満潮
wave surf > ~ola, oleaje, ~surf > волн*, серфинг* > 波, サーフィン
sea marine > ~mar, ~marino, ~playa > море, морск* > 海, 海上, 海洋
beach > playa > пляж* > ビーチ, 海水浴
sunset sunrise > atardecer, amanecer, puesta de ~sol > закат*, восход*, рассвет* > 日の出, 日没, 夕日
moon > ~luna > луна, луны, лунн* > 月齢, 満月
stars planets > estrella, planeta > звезд*, планет* > 星, 星空, 惑星
space > espacio, espacial > космос*, космич* > 宇宙
air quality pollution > contaminacion, calidad del aire > загрязнен*, воздух* > 大気, 大気汚染, 空気
pollen > polen > пыльц* > 花粉
fire wildfire > incendio > пожар* > 火災, 火事, 山火事
avalanche > avalancha, alud > лавин* > 雪崩
price > precio, tarifa, cuanto cuesta, cuanto vale, cuesta > цена, цены, цену, стоит, стоимост* > 値段, 価格, 料金, いくら
value appraisal > valor, ~vale, tasar, tasacion, valoracion > оценить, оценк* > 相場, 査定, 鑑定, 価値
cheap cheapest > barato, barata, economico > дешев* > 安い, 最安, 格安
compare comparison > comparar, comparador, comparacion > сравн* > 比較, 比べ
buy shop > comprar, compra, tienda > купить, покуп*, магазин* > 買い物, 購入, 通販, 店舗
sell > vender, venta > продать, продаж* > 売る, 販売
discount coupon > descuento, cupon, cupones, oferta > скидк*, купон*, промокод* > 割引, クーポン
exchange rate currency > divisa, tipo de cambio, cambio, moneda, dolar > курс*, валют*, обмен* > 為替, 両替, 通貨, レート
dollar > dolar, dolares > доллар* > ドル
bitcoin crypto > ~bitcoin, criptomoneda > биткоин*, биткойн*, крипт* > ビットコイン, 仮想通貨, 暗号資産
token crypto > ~token, ~tokens > токен* > トークン
wallet > monedero, billetera, cartera > кошел* > ウォレット, 財布
blockchain ledger > cadena de bloques, ~blockchain > блокчейн* > ブロックチェーン, 台帳
swap exchange > intercambiar > свап, обменять > スワップ, 交換
stock shares equity > acciones, bolsa, cotizacion > акци*, бирж*, котиров* > 株, 株価, 株式, 銘柄
dividend > dividendo > дивиденд* > 配当
fund etf > fondo de inversion, fondos > фонд* > ファンド, 投資信託
gold silver metal > ~oro, ~plata > золот*, серебр* > 金価格, 金相場, 貴金属
bank account > ~banco, bancario, cuenta > банк*, счет* > 銀行, 口座
loan mortgage > hipoteca, prestamo, credito > ипотек*, кредит*, займ* > 住宅ローン, ローン, 融資, 借入
interest rate > ~interes, intereses > процент*, ставк* > 金利, 利息
credit score > solvencia > кредитн* истор*, кредитн* рейтинг* > 信用スコア, 与信
inflation consumer price > inflacion > инфляц* > インフレ, 物価
economic data > economia, macroeconomico, macroeconomia > экономик*, экономич* > 経済, 景気
tax > impuesto, iva, ~fiscal, renta > налог*, ндс > 税金, 消費税, 所得税, 税
salary income > sueldo, salario, nomina > зарплат*, оклад* > 給料, 給与, 年収, 手取り
pension retirement > jubilacion, jubilado, jubilar, jubilarme, jubile, ~pension > пенси* > 年金, 老後
insurance > seguro, seguros, aseguradora > страхов* > 保険
invoice > factura > счет фактур*, накладн* > 請求書, インボイス
receipt > recibo, ticket de compra > чек, чеки, чека, квитанц* > 領収書, レシート
payment > pago, pagar > платеж*, оплат*, платить > 支払い, 決済
budget > presupuesto > бюджет* > 予算, 家計
accounting bookkeeping > contabilidad, contable > бухгалтер* > 会計, 簿記, 帳簿
company business registry > empresa, sociedad, compania > компан*, фирм*, предприят*, контрагент* > 会社, 企業, 法人
startup company > emprendimiento > стартап* > スタートアップ
director owner > dueno, propietario, titular > владел*, директор* > 所有者, 持ち主, 代表
customer client > cliente > клиент*, покупател* > 顧客, お客
tender contract award > licitacion, concurso publico > тендер*, госзакуп* > 入札
sanctions screening > sancion* > санкц* > 制裁
risk > riesgo > риск* > リスク, 危険度
scam fraud phishing > estafa, fraude, ~timo > мошен*, обман* > 詐欺, 不正
money laundering > blanqueo, lavado de dinero > отмыван* > 資金洗浄, マネーロンダリング
passport identity document > pasaporte, dni > паспорт* > パスポート, 旅券
identity verification > identidad > личност* > 本人確認, 身分証
visa entry > visado, visa > виза, визы, визу > ビザ, 査証
law legal regulation > ley, leyes, ~legal, normativa > закон*, юрид*, правов* > 法律, 法令, 規制
contract agreement > contrato > договор*, контракт* > 契約, 契約書
lawyer > abogado > адвокат*, юрист* > 弁護士
court case > juicio, tribunal, sentencia > суд, суда, судебн* > 裁判, 判例, 訴訟
patent > patente > патент* > 特許
trademark > marca registrada > товарн* знак* > 商標
inheritance will > herencia, testamento > наследств*, завещан* > 相続, 遺言
fine ticket > multa > штраф* > 罰金, 反則金, 違反
notary > notario > нотариус* > 公証
signature sign > firma, firmar > подпис* > 署名, サイン
translate translation > traducir, traduc* > перевод*, перевести, переведи > 翻訳, 訳し, 訳す, 通訳
language > idioma, lengua > язык* > 言語
english > ingles, inglesa > английск* > 英語
spanish > espanol, espanola > испанск* > スペイン語
russian > ruso, rusa > русск* > ロシア語
japanese > japones, japonesa > японск* > 日本語
german > aleman, alemana > немецк* > ドイツ語
french > frances, francesa > французск* > フランス語
chinese > chino > китайск* > 中国語
text > texto > текст* > 文章, テキスト, 文字
word > palabra > слово, слова > 単語, 言葉
summary summarize > resumir, resumen, resume > кратк*, резюмир*, сократить текст > 要約, まとめ
document > documento > документ* > 文書, 書類, ドキュメント
article > articulo > статья, статьи, статью > 記事
file > archivo, fichero > файл* > ファイル
grammar spelling > gramatica, ortografia > грамматик*, орфограф* > 文法, 誤字, 校正
paraphrase rewrite > reescribir, parafrasear > переписать, перефраз* > 言い換え, 書き換え
plagiarism copied > plagio > плагиат* > 盗用, 剽窃
sentiment > sentimiento, opinion > тональност*, отзыв* > 感情, 評判
review > resena, opiniones > отзыв* > 口コミ, レビュー
voice speech > ~voz, habla > голос*, речь, речи > 音声, 声
speech synthesis > leer en voz alta, locucion > озвуч*, прочитай вслух > 読み上げ, 音声合成
transcription transcribe > transcribir, transcripcion, grabacion > расшифр*, транскри*, речь в текст > 文字起こし, 書き起こし, 録音
transcription transcribe > transcribir > запис* разговор* > 文字に起こ
meeting > reunion > совещан*, встреч*, собран* > 会議, ミーティング, 打ち合わせ
audio sound > ~audio, sonido > аудио*, звук* > 音, オーディオ
noise > ruido > шум, шума > 騒音, ノイズ
music > musica > музык* > 音楽
song > cancion > песн* > 曲, 歌
lyrics > letra de, letras de > текст песн*, слова песн* > 歌詞
background track music > banda sonora > фонов* музык* > ＢＧＭ, BGM
podcast > ~podcast > подкаст* > ポッドキャスト
video clip > ~video > видео* > 動画, ビデオ
subtitles captions > subtitulo > субтитр* > 字幕
image picture photo > imagen, foto, fotografia > картин*, изображен*, фото* > 画像, 写真, 絵, イラスト
draw generate image > dibuj*, generar una imagen > рисун*, нарис* > 描く, 描いて, 画像生成
background removal > quitar el fondo, fondo > фон, фона > 背景
face > ~cara, rostro > лицо, лица > 顔
logo > logotipo > логотип* > ロゴ
color palette > ~color, colores > цвет* > 色, 配色
font typeface > tipografia > шрифт* > フォント, 書体
screenshot > captura de pantalla > скриншот*, снимок экран* > スクリーンショット, スクショ
resize compress > redimensionar, comprimir > сжать, уменьш* > 圧縮, リサイズ, 縮小
extract > extraer, sacar > извлечь, извлек* > 抽出, 取り出
read recognize ocr > leer, reconocer > распозна*, прочита* > 読み取, 認識
handwriting handwritten > manuscrito, a ~mano > рукопис* > 手書き
scan > escanear, escaneado > скан* > スキャン
pdf > ~pdf > пдф, pdf > PDF
table spreadsheet > hoja de calculo > таблиц* > 表計算, スプレッドシート
barcode qr > codigo de barras > штрих*, qr код* > バーコード
convert converter > convertir, conversor, pasar a > конверт*, преобраз* > 変換, 換算
print > imprimir, impresion > печат* > 印刷, プリント
email > correo, correos > почт*, имейл*, электронн* адрес* > メール, メールアドレス
spam > correo ~basura, no deseado > спам* > 迷惑メール, スパム
message > mensaje > сообщен* > メッセージ
sms text message > ~sms, mensaje de texto, mensajes de texto > смс > ショートメッセージ
phone number > telefono, movil, numero de telefono > телефон* > 電話, 電話番号
send > enviar, mandar > отправ*, послать > 送信, 送る
call telephone > llamada, llamar > звонок*, позвон* > 通話
notification > notificacion, aviso > уведомлен* > 通知
alert warning > alerta, avisos > предупрежд*, оповещ* > 警報, 速報, 注意報, アラート
social posts > redes sociales > соцсет*, социальн* > ＳＮＳ, SNS
news headlines > noticia, titulares > новост* > ニュース, 新聞, 報道
search > busca*, buscador > поиск*, искать, найти > 検索
web page website > pagina ~web, ~web, sitio ~web, pagina > сайт*, страниц* > サイト, ウェブ, ホームページ
link url > enlace > ссылк* > リンク, ＵＲＬ, URL
shorten > acortar, acorta > сократить, укорот* > 短縮
domain > dominio > домен* > ドメイン
server uptime reachable > servidor, caida, caido > сервер*, доступност* > サーバー, 稼働
down > no funciona > не работа*, упал > 落ちて, ダウン
internet ip address > direccion ip > ip адрес* > IPアドレス
proxy vpn > ~proxy > прокси* > プロキシ
password > contrasena > парол* > パスワード
data breach leak > filtracion, filtrado > утеч*, утек*, слит* > 漏洩, 流出
malware virus > ~virus, ~malware > вирус*, вредонос* > ウイルス, マルウェア
malicious dangerous > malicioso, peligroso > вредн*, опасн* > 危険, 悪意
security vulnerability > seguridad, vulnerabilidad > безопасн*, уязвим*, взлом* > 脆弱性, セキュリティ
certificate > certificado > сертификат* > 証明書
encrypt > cifrar, cifrado > шифр* > 暗号化
code program > codigo, programa > код, кода, программ* > コード, プログラム
run execute > ejecutar > запуст*, выполн* > 実行
python > ~python > python, питон* > Python, パイソン
software library > libreria, biblioteca de ~software > библиотек* > ライブラリ
bug error > ~error, fallo > ошибк*, баг* > バグ, エラー
test > probar, prueba de > тест* > テスト
database sql > base de datos > баз* данн* > データベース
storage > almacenamiento, guardar > хранен*, хранил* > 保存, ストレージ
language model chat > modelo de lenguaje, ~chat > чат*, языков* модел*, нейросет* > チャット, 言語モデル, AIと
embedding vector > vectores > вектор*, эмбеддинг* > ベクトル, 埋め込み
regular expression > expresion ~regular > регулярн* выраж* > 正規表現
random number > aleatorio, al azar > случайн* > 乱数, ランダム
equation math solve > ecuacion, matematica > уравнен*, математ*, задач* по математик* > 方程式, 数学
calculate calculator > calcular, calculadora > посчита*, рассчит*, вычисл*, калькулятор* > 計算
chart graph > grafico, grafica > график*, диаграмм* > グラフ, チャート
unit convert > unidades > единиц* измерен* > 単位
chemical compound > quimica, quimico > химич*, хими* > 化学, 化合物
physics > fisica > физик* > 物理
translation dictionary > diccionario > словар* > 辞書, 辞典
flight airline > vuelo, avion, aerolinea > рейс*, самолет*, авиа* > 飛行機, 航空, フライト, 航空券
airport > aeropuerto > аэропорт* > 空港
train > tren, trenes > поезд*, электричк* > 電車, 列車, 新幹線
station platform > estacion, anden > вокзал*, станци* > 駅
bus > autobus, autobuses, ~bus > автобус* > バス
tram subway metro > tranvia, ~metro > метро, трамва* > 地下鉄, 路面電車
timetable departures > horario, ~sale, salidas > расписан*, отправлен* > 時刻表, 発車
delay late > retraso, retrasado > опазд*, задерж* > 遅延, 遅れ
taxi ride > ~taxi > такси > タクシー
car vehicle > coche, carro, automovil, ~auto > автомоб*, машин* > 車, 自動車
used second hand > segunda ~mano, usado, usados > подержан*, б/у > 中古
number plate registration > matricula > номер автомобил*, номер машин*, госномер* > ナンバープレート, 車両番号
electric car charging > coche electrico, cargador, recarga > электромоб*, зарядк*, зарядн* > 電気自動車, 充電, ＥＶ, EV
fuel petrol price > gasolina, combustible, gasolinera > бензин*, топлив*, заправк* > ガソリン, 燃料, 給油
parking > aparcar, aparcamiento, estacionar, ~parking > парков*, стоянк* > 駐車, 駐車場
road route directions > carretera, ruta, como llegar > маршрут*, дорог* > 道路, 経路, 道順, ルート
traffic > trafico > пробк* > 渋滞, 交通
toll > peaje > платн* дорог* > 通行料, 高速料金
truck cargo > camion, carga > грузов*, груз, груза, грузы > トラック, 貨物
ship vessel > barco, buque > судно, судна, корабл* > 船, 船舶
bicycle bike > bicicleta, ~bici > велосипед* > 自転車
map > mapa > карта, карты, карту > 地図
address > direccion, calle > адрес* > 住所
postal code > codigo ~postal > почтов* индекс*, индекс* > 郵便番号
coordinates location > coordenada, ubicacion > координат*, местополож* > 座標, 緯度, 位置
elevation height > altitud, altura > высот* > 標高, 高さ
satellite > satelite > спутник* > 衛星
time zone > zona horaria, que hora es > часов* пояс*, сколько времени > 時差, 現地時間
calendar > calendario > календар* > カレンダー
holiday bank public > festivo, feriado > праздник* > 祝日, 休日
appointment booking > cita, citas > запись к, записаться > 予約
reserve booking > reserva, reservar > заброн*, бронир* > 予約
restaurant table > restaurante, cenar, mesa para > ресторан*, столик* > レストラン, 飲食店, 食事
hotel room > ~hotel, hoteles, alojamiento, habitacion > отел*, гостиниц*, номер в > ホテル, 宿泊, 宿, 旅館
trip travel > viaje, viajar > поездк*, путешеств* > 旅行, 旅
tour sights > turismo, turistico > экскурс*, достопримеч* > 観光
hiking trail > senderismo, excursion, caminata > поход*, пеш* > 登山, ハイキング, 山道
climbing > escalada, escalar > скалолаз*, восхожд* > クライミング
mountain > montana > гора, горы, горн* > 山
difficulty > dificultad > сложност*, трудност* > 難易度, 難しさ
diving > buceo > дайвинг*, погружен* > ダイビング, 潜水
fishing > ~pesca, pescar > рыбалк*, рыбн* > 釣り
camp tent > acampar > кемпинг*, палатк* > キャンプ
hot springs > aguas termales, balneario > термальн*, горяч* источник* > 温泉
recipe > receta > рецепт* > レシピ
cook cooking > cocinar, cocino, cocina > готов*, приготов* > 料理, 調理
ingredients > ingrediente > ингредиент*, продукт* > 材料, 食材
fridge > nevera, frigorifico, refrigerador > холодильник* > 冷蔵庫
food meal > comida, alimento > еда, еды, пищ* > 食べ物, 食品
calories nutrition > caloria, nutricion > калори*, питан* > カロリー, 栄養
allergy allergen > alergia > аллерг* > アレルギー
wine pairing > ~vino > вино, вина, вину > ワイン
dish pairing meat > carne, cordero, plato > блюд*, мяс* > 肉, 魚料理
beer > cerveza > пиво, пива > ビール
coffee > ~cafe > кофе > コーヒー
tea > te verde > чай, чая > お茶, 紅茶
cheese > queso > сыр, сыра > チーズ
bread cake bakery > ~pan, tarta, ~pastel > хлеб*, торт*, выпечк* > パン, ケーキ
meat > carne > мясо, мяса > 肉
fish > ~pescado > рыба, рыбы > 魚
fruit vegetable > fruta, verdura > фрукт*, овощ* > 果物, 野菜
mushroom > seta, setas, hongo > гриб* > キノコ, きのこ
poisonous toxic > venenoso, toxico > ядовит* > 毒, 有毒
plant > planta > растен* > 植物
flower > ~flor, flores > цветок, цвет* растен*, цветы > 花
tree > arbol > дерев* > 樹木, 木
garden > jardin > сад, сада, огород* > 庭, 園芸
crop agriculture farm > cultivo, cosecha, agricola > урожа*, посев*, сельск* > 農業, 作物, 農作物
disease > enfermedad, plaga > болезн* > 病気, 病害
leaf > hojas > лист, листа, листь* > 葉
bird > pajaro, ~ave, aves > птиц* > 鳥, 野鳥
song call > canto > пение, пению > 鳴き声
insect > insecto > насеком* > 昆虫, 虫
dog > perro, perra, cachorro > собак*, щен* > 犬
cat > gato, gata > кошк*, кота, котен* > 猫
pet animal > mascota, animal > питом*, животн* > ペット, 動物
veterinary vet > veterinario, veterinaria > ветеринар* > 獣医, 動物病院
sick ill > enfermo > болеет, больн*, заболел* > 病気, 具合が悪, 体調
horse > caballo > лошад* > 馬
doctor medical > medico, ~doctor > врач*, доктор*, медицин* > 医者, 医療, 病院
dentist dental > dentista > стоматолог*, зубн* > 歯医者, 歯科
hospital emergency > ~hospital, urgencias > больниц*, скор* помощ* > 病院, 救急
symptom > sintoma, me duele > симптом*, болит > 症状, 痛み
medicine drug medication > medicamento, medicina, pastilla > лекарств*, таблет*, препарат* > 薬, 医薬品
interaction together > interaccion, juntos > взаимодейств*, совместим*, вместе > 飲み合わせ, 相互作用, 併用
pharmacy > farmacia > аптек* > 薬局
blood test lab > analisis de sangre > анализ* кров* > 血液検査
vaccination > vacuna > вакцин*, прививк* > ワクチン, 予防接種
pregnancy > embarazo > беремен* > 妊娠
baby newborn > bebe, recien nacido > младен*, малыш*, новорожд* > 赤ちゃん, 新生児, 乳児
child > nino, nina, hijo > ребен*, детск* > 子供, 子ども
first name > nombre de, nombres > имя, имена > 名前, 名付け, 命名
idea suggestion > ~ideas > идея, идеи > アイデア, 候補
mental health stress > estres, ansiedad > стресс*, тревог*, психолог* > ストレス, メンタル
sleep > dormir, sueno > сон, сна, спать > 睡眠, 眠れ
dream interpretation > sonar, significado de los suenos > сонник*, толкован* сн* > 夢, 夢占い
exercise workout fitness > ejercicio, entrenamiento, gimnasio > трениров*, упражнен*, фитнес* > 運動, 筋トレ, トレーニング
running marathon > correr, maraton > бег, бега, марафон* > マラソン, ランニング
yoga > ~yoga > йога, йоги > ヨガ
massage > masaje > массаж* > マッサージ
hair salon > peluqueria, ~pelo > парикмах*, стрижк* > 美容院, ヘアカット, 髪
beauty nail spa > manicura, belleza > маникюр*, спа > ネイル, エステ
clothes fashion > ropa, ~moda > одежд*, мод* > 服, ファッション, 洋服
shoes > zapato, zapatillas > обув*, кроссов* > 靴, スニーカー
jewelry gem > joya, diamante > ювелир*, бриллиант* > 宝石, ジュエリー
football soccer > futbol > футбол* > サッカー
basketball > baloncesto > баскетбол* > バスケ
tennis > tenis > теннис* > テニス
match result score > partido, resultado > матч*, счет матч* > 試合, 結果, スコア
sport > deporte > спорт* > スポーツ
chess > ajedrez > шахмат* > チェス
best move > jugada > ход, ходы > 最善手, 手筋
game > juego, videojuego > игра, игры, игр > ゲーム
lottery > loteria > лотере* > 宝くじ
betting odds > apuesta, cuotas > ставки на, букмекер* > 賭け, オッズ
movie film > pelicula, ~cine > фильм*, кино > 映画
series > ~serie > сериал* > ドラマ
book > libro > книг* > 本, 書籍
scientific papers research > cientifico, investigacion > научн*, исследован* > 論文, 研究
concert event ticket > concierto, entradas, evento > концерт*, мероприят*, билет* > コンサート, イベント, チケット
theater > teatro > театр* > 演劇
museum art > museo, ~arte, cuadro > музе*, искусств* > 美術, 博物館
photography > fotografo > фотограф* > 撮影
horoscope astrology > horoscopo, signo > гороскоп*, зодиак* > 占い, 星占い, 星座占い
joke > chiste > шутк*, анекдот* > ジョーク, 冗談
quiz > cuestionario, ~trivia > викторин* > クイズ
history > historia > истори* > 歴史
genealogy family > antepasado, genealogia, genealogico > предк*, родослов* > 先祖, 家系
wedding > boda > свадьб*, свадебн* > 結婚式, 結婚
party event > fiesta, cumpleanos > вечеринк*, день рожден* > パーティー, 誕生日
gift > regalo > подар* > プレゼント, 贈り物, ギフト
house home > ~casa, hogar > дом, дома > 家, 自宅, 住宅
apartment flat property > piso, vivienda, apartamento > квартир*, недвиж* > マンション, アパート, 不動産
rent rental > alquil*, arrend* > аренд*, снять > 賃貸, 家賃, レンタル, 借り
furniture > muebles > мебел* > 家具
table chair > silla, mesa > стол, стул* > 椅子, テーブル, 机
cleaning > limpieza, limpiar > уборк*, чистк* > 掃除, 清掃, クリーニング
repair > reparar, reparacion, arreglar > ремонт*, починить > 修理, 修繕
plumber > fontanero, plomero > сантехник* > 水道, 配管
electrician > electricista > электрик* > 電気工事
moving > mudanza > переезд* > 引越し, 引っ越し
garbage recycling > ~basura, reciclaje > мусор*, переработ* > ごみ, ゴミ, リサイクル
electricity power price > electricidad, ~luz > электр*, свет* тариф* > 電気代, 電力, 電気
solar panel > panel ~solar, paneles > солнечн* панел*, солнечн* батар* > 太陽光, ソーラー
heating > calefaccion > отоплен* > 暖房
gas > ~gas ~natural > газ, газа > ガス代
carbon emissions > emisiones, carbono > выброс*, углерод* > 排出量, 二酸化炭素, 温室効果
package parcel tracking > paquete > посыл* > 荷物, 小包, 宅配, 宅配便
delivery shipping > envio, entrega > достав* > 配送, 配達, 発送
track position > rastrear, seguimiento, donde esta > отслед*, где находится > 追跡
customs tariff duty > aduana, arancel > таможен*, пошлин* > 関税, 通関
product > producto, articulo > товар* > 商品, 製品
inventory stock > inventario, existencias > склад*, остатк* > 在庫
job vacancy > empleo, trabajo, vacante > работ*, ваканс* > 求人, 仕事, 転職, 就職
resume cv > curriculum > резюме > 履歴書
school education > escuela, colegio, educacion > школ*, образован* > 学校, 教育
university degree > universidad, ~carrera > университет*, вуз* > 大学, 進学
exam > examen, examenes > экзамен* > 試験, 受験
essay > ensayo, redaccion > эссе, сочинен* > 作文, エッセイ
lesson teach > clase, leccion > урок* > 授業, レッスン
learn study > aprender, estudiar > учить*, изуч* > 学習, 勉強
scholarship > beca > стипенд* > 奨学金
survey poll > encuesta > опрос* > アンケート, 世論調査
population census > poblacion, censo > населен*, перепис* > 人口
crime safety > delincuencia, crimen > преступ* > 犯罪, 治安
election > eleccion, elecciones, votar > выбор*, голосован* > 選挙
charity donation > donacion, ~caridad > благотвор*, пожертв* > 寄付, 募金
identify recognition > identificar, reconocer, que es este > определить, опознать, распозн* > 識別, 見分け, 判別
check verify > comprobar, verificar, validar > провер* > 確認, 検証, チェック, 調べ
exists > existe > существ* > 存在
free available > libre, disponible > свободн* > 空いて, 空き
nearby > cerca, cercano > рядом, поблизост*, ближайш* > 近く, 周辺
home > en casa > дома > 自宅で
plan > ~plan, planificar > план, плана, планир* > 計画, プラン
monthly > mensual, al mes > в месяц, ежемесяч* > 月々, 毎月
week weekly > semana, semanal > недел* > 週間, 今週
tonight today > hoy, esta noche > сегодня > 今日, 今夜
tomorrow > manana > завтра > 明日
voucher gift card > tarjeta regalo > подарочн* карт* > 商品券, ギフトカード
credit card > tarjeta de credito > кредитн* карт* > クレジットカード
list names watchlist > lista negra > список*, списк* > 名簿, ブラックリスト
person people > ~persona > человек*, людей > 人物
who is > quien es > кто такой > 誰の
smart home lamp > luces, domotica > умн* дом* > スマートホーム, 照明
3d model printing > impresion 3d > 3d печат* > 3Dプリント, ３Ｄ
name tag object photo > objeto > объект*, предмет* > 物体
similarity > similitud, parecido > похож*, сходств* > 類似, 似て
memory notes agent > recordar, ~memoria > памят*, запомн* > 記憶, メモ
schedule > programar, agenda > распис* встреч*, запланир* > スケジュール, 日程
browser automation > navegador > браузер* > ブラウザ
scrape crawl extract page > rastreo ~web, extraer datos > парс*, скрапинг* > スクレイピング, クロール
captcha > ~captcha > капч* > キャプチャ認証
moderation toxic hate > insulto, odio, toxico > оскорблен*, токсичн* > 誹謗中傷, 有害
trend trending > tendencia > тренд*, тенденц* > トレンド, 流行
audience followers > seguidores > подписчик* > フォロワー
keyword seo > palabra clave, posicionamiento > ключев* слов* > キーワード, 検索順位
podcast episode > episodio > эпизод*, выпуск* > エピソード
coin collect > monedas antiguas, numismatica > нумизмат* > 古銭, 硬貨
stamp > sello postal > марка, марки > 切手
gene genome > ~gen, genetico > ген, гены, геном* > 遺伝子, ゲノム
protein > proteina > белок, белка > タンパク質
grave cemetery > cementerio, tumba > кладбищ*, могил* > 墓, 墓地
tutor solve homework > deberes, profesor > репетитор*, домашн* задан* > 宿題, 家庭教師
`
