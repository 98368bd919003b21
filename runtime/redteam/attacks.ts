// The numbered attacks on an x402 payment, each with the damage that it does and a public source. The program plays the
// attacks that a stranger can show over HTTP; each of the others names the reason why it is skipped. A case without a
// row here, and a row without either cases or a reason, fails `test/runtime/redteam.test.ts`.

interface Attack {
  readonly number: number
  readonly title: string
  readonly why: string
  readonly source: string
  /** The reason why HTTP alone cannot show it; absent where cases exist. */
  readonly skipped?: string
}

const cwe = (number: number) => `CWE-${number}`
const five = "arXiv 2605.11781, Five Attacks on x402"

const row = (number: number, title: string, why: string, source: string): Attack => ({ number, title, why, source })

/** Reasons for a whole group of attacks. */
const process = "needs control of the target's processes: npm run chaos, npm run scenarios"
const node = "needs control of the ledger node that the target asks: npm run faults, npm run simulate"
const database = "needs control of the target's database: npm run faults, npm run chaos"
const clock = "needs control of the target's clock: npm run faults"
const payer = "shown by an agent that pays, not by a facilitator, seller or tool server: npm run conformance -- agents"
const tenants = "needs the keys of two customers of the target"
const contract = "needs a hostile contract on the ledger and in the target's list of assets"
const catalog = "needs a listing that buyers have paid for: npm run bench -- hostile-week"
const channel = "needs a payment channel: npm run conformance -- batch, npm run simulate -- --batch"
const log = "needs the target's log key or its backups: npm run chaos"

const skip = (number: number, title: string, skipped: string, source = cwe(693)): Attack => ({
  number,
  title,
  why: "",
  source,
  skipped
})

const drained = "The facilitator's own signature completes a payment out of its own account: a live wallet was drained."

export const attacks: ReadonlyArray<Attack> = [
  row(1, "the facilitator as payer or recipient", drained, "x402 exact scheme for Stellar, security checks"),
  row(2, "the facilitator as source of the transaction", drained, "x402 exact scheme for Stellar, security checks"),
  row(3, "the facilitator as source of the operation", drained, "x402 exact scheme for Stellar, security checks"),
  row(4, "the facilitator inside an authorization", drained, "x402 exact scheme for Stellar, security checks"),
  row(5, "source-account credentials", "They need no signature of the payer.", "CAP-0046-11"),
  row(6, "authorizations without a signature", "Anyone can complete an unsigned entry.", cwe(347)),
  row(7, "signatures by another key or for another network", "A signature proves one key on one network.", cwe(347)),
  row(8, "malleated signatures", "A lax verifier accepts a payment that the network refuses.", "GHSA-qr2g-p6q7-w82m"),
  row(9, "calls nested in the authorization", "The signature also permits an approval or a second transfer.", five),
  row(10, "authorizations of other addresses", "One submission moves money of a party that did not agree.", five),
  row(11, "two authorizations of the payer", "The second one is consumed without a purpose.", five),
  row(12, "two operations, or none", "Only the one checked operation may be executed.", "CAP-0046"),
  row(13, "an operation that is not a contract call", "It is paid for and moves something else.", "CAP-0046"),
  row(14, "another function than transfer", "approve and transfer_from give away later money.", "SEP-41"),
  row(15, "arguments of wrong count, type or range", "A conversion accepts less money than the price.", cwe(681)),
  row(16, "another recipient, or a muxed one", "The seller delivers and someone else is paid.", "SEP-23"),
  row(17, "another asset", "A worthless token pays the price.", five),
  row(18, "memo, preconditions and time bounds", "They decide when the payment may fail.", "CAP-0021"),
  row(19, "a fee bump or an old envelope", "The envelope hides whose transaction is submitted.", "CAP-0015"),
  row(20, "terms that differ between their copies", "Verifier and seller read different prices.", five),
  row(21, "an authorization that ended or lasts too long", "It is used after the seller has delivered.", cwe(613)),
  row(22, "one payment sent concurrently and again", "One payment buys several resources.", five),
  row(23, "one payment for another resource or seller", "A payment is bound to what it pays for.", five),
  row(24, "identifiers reused or out of range", "An identifier decides which answer a caller receives.", cwe(694)),
  row(25, "resource data of absurd size", "The sponsor pays the fees that the buyer writes.", cwe(770)),
  skip(26, "a wallet whose check burns the budget", contract, cwe(400)),
  skip(27, "archived entries and rent spikes", node, "CAP-0046-12"),
  row(28, "the balance moves between verify and settle", "Failed transactions still cost fees.", cwe(367)),
  row(29, "a recipient that cannot receive", "The transfer fails on the ledger and the fee is lost.", cwe(703)),
  row(30, "encodings that are not canonical", "Two spellings of one payment become two payments.", cwe(838)),
  skip(31, "two replicas settle one payment", process, cwe(362)),
  skip(32, "a crash at every step", process, cwe(662)),
  skip(33, "an RPC endpoint that fails and lies", node, cwe(345)),
  skip(34, "a transaction that lands after the poll gave up", node, cwe(367)),
  skip(35, "a lease that expires while it is used", process, cwe(362)),
  skip(36, "a sequence number reloaded while pending", process, cwe(362)),
  skip(37, "a budget that leaks", process, cwe(772)),
  skip(38, "unresolved settlements as denial of service", node, cwe(770)),
  skip(39, "a sponsor without money; a fee surge", node, cwe(754)),
  skip(40, "a reset test network", node, cwe(754)),
  skip(41, "a database that fails over within settle", database, cwe(662)),
  row(42, "JSON that is broken, deep, huge or strange", "A parser fails where a refusal is due.", cwe(674)),
  row(43, "bodies beyond the limit; requests that never end", "One client occupies memory or connections.", cwe(770)),
  row(44, "answers that leak detail or overflow headers", "Proxies drop them; readers learn internals.", cwe(209)),
  row(45, "schemas with references and slow patterns", "The target fetches or computes for a stranger.", cwe(1333)),
  row(46, "names that deceive people and agents", "Text of a stranger reaches a reader unchanged.", cwe(451)),
  row(47, "addresses that resemble others", "A listing takes over another one's place.", cwe(180)),
  skip(48, "spam of listings by self payments", catalog, cwe(837)),
  row(49, "addresses of the inside", "The target reads its own network for a stranger.", cwe(918)),
  row(50, "cursors that are forged", "A position decides which rows are read.", cwe(565)),
  row(51, "operators and wildcards in a search", "A query reads or costs more than allowed.", cwe(89)),
  row(52, "price filters out of range", "A filter that is ignored returns too expensive offers.", cwe(20)),
  row(53, "keys in wrong places", "Keys in URLs end in logs; two headers decide differently.", cwe(598)),
  skip(54, "a caller that forges its address", "the effect shows only in the target's limits", cwe(348)),
  skip(55, "a live price that differs from the catalog's", payer, five),
  skip(56, "two copies of the terms that differ", payer, five),
  skip(57, "a second 402 after payment; a forged receipt", payer, five),
  skip(58, "a result without end; a result that instructs", payer, cwe(400)),
  skip(59, "parallel calls on one budget", payer, cwe(362)),
  row(60, "a foreign page calls the local server", "A browser pays or reads for a stranger's page.", cwe(350)),
  row(61, "references that are tampered with", "A reference decides which address is dialed.", cwe(565)),
  skip(62, "an external signer that lies", payer, cwe(347)),
  row(63, "keys and signatures of small order", "A lax verifier accepts them, the network does not.", "RFC 8032"),
  row(64, "other variants of credentials", "Each is accepted or refused on purpose.", "CAP-0071"),
  skip(65, "a simulation that asks for a restore", node, "CAP-0046-12"),
  skip(66, "another customer sends a settled payment", tenants, cwe(639)),
  row(67, "two authorizations with one nonce", "One ledger transaction, two answers of success.", cwe(294)),
  skip(68, "a node that hides the transaction", node, cwe(345)),
  row(69, "the buyer submits its own authorization first", "One payment is counted twice or lost.", cwe(367)),
  skip(70, "an endpoint far ahead, or one that stopped", node, cwe(345)),
  skip(71, "a clock that is wrong", clock, cwe(367)),
  skip(72, "fees beyond the ceiling", node, cwe(754)),
  skip(73, "replicas that differ", process, cwe(440)),
  row(74, "one caller floods", "The others wait for it.", cwe(770)),
  skip(75, "a free verify rewrites a listing", catalog, cwe(345)),
  skip(76, "a buyer changes a listing's version", catalog, cwe(345)),
  row(77, "metadata with odd keys", "A payment must not fail for words beside it.", cwe(1321)),
  row(78, "foreign Host and Origin", "A page in a browser settles and reads on this machine.", cwe(346)),
  skip(79, "hostile modules on the ledger", "concerns the ledger: npm run fuzz -- wasm", cwe(400)),
  row(80, "expensive searches", "One request costs seconds of work.", cwe(407)),
  skip(81, "a paid answer with odd keys", payer, cwe(1321)),
  skip(82, "a state folder that others read", process, cwe(732)),
  skip(83, "a failover that loses commits", database, cwe(662)),
  skip(84, "a page of events without rows", database, cwe(835)),
  skip(85, "two concurrent rotations of a key", process, cwe(362)),
  skip(86, "a database that reads and does not write", database, cwe(754)),
  row(87, "the paid buyer comes again", "Verify and settle must answer the same.", cwe(841)),
  skip(88, "an agent that writes its own reference", payer, cwe(180)),
  skip(89, "a paid answer with an incomplete receipt", payer, cwe(754)),
  skip(90, "the answer of a paid call is lost", payer, cwe(662)),
  row(91, "batches, cancellations and objects as strings", "A batch counts as one call.", "JSON-RPC 2.0, section 6"),
  skip(92, "a stranger declares another method", catalog, cwe(345)),
  skip(93, "a template answers for another address", catalog, cwe(180)),
  skip(94, "listings on names that do not resolve", catalog, cwe(770)),
  skip(95, "a resolver that fails", "needs control of the target's resolver: npm run faults", cwe(754)),
  skip(96, "sixty searches and sixty settlements", catalog, cwe(837)),
  skip(97, "an operator's old cookie; cells that compute", "needs an operator's session", cwe(613)),
  row(98, "too few instructions; a vector far too deep", "A simulation is trusted too much.", cwe(674)),
  row(99, "smuggled requests and path spellings", "Two servers read different requests.", "RFC 9112, section 11"),
  skip(100, "a channel with swapped roles", channel, cwe(345)),
  row(101, "the buyer adds an identifier to its payment", "Every repetition becomes a new success.", cwe(294)),
  skip(102, "a kill between claim and answer", process, cwe(662)),
  skip(103, "an endpoint swallows the send", node, cwe(345)),
  skip(104, "a budget that is used up", "needs the target's settings", cwe(841)),
  skip(105, "a removed key that still works", process, cwe(613)),
  skip(106, "a signature for one purpose opens another", "differs by target: test/kernel/accounts", cwe(347)),
  skip(107, "a signature without expiry", channel, cwe(613)),
  skip(108, "a voucher of small order", channel, "RFC 8032"),
  skip(109, "one voucher settled a hundred times", channel, cwe(294)),
  skip(110, "a deposit far above the price", payer, cwe(770)),
  skip(111, "deposits of one unit", channel, cwe(770)),
  skip(112, "invented channels", channel, cwe(770)),
  skip(113, "an agent's host that dies", payer, cwe(662)),
  row(114, "numbers beyond every range", "Two readers of one number see two values.", cwe(681)),
  skip(115, "paid answers in broken framings", payer, "RFC 9112, section 6.3"),
  skip(116, "arguments that the schema refuses", payer, cwe(20)),
  skip(117, "a channel call without an answer", payer, cwe(662)),
  skip(118, "a clock that jumps forward", clock, cwe(367)),
  skip(119, "a retired log key", log, "RFC 6962"),
  skip(120, "a restored log", log, "RFC 6962"),
  skip(121, "receipts that differ", log, "RFC 6962"),
  skip(122, "invented addresses under an origin", catalog, cwe(345)),
  skip(123, "self payments that take a listing", catalog, cwe(837)),
  skip(124, "one self payment takes first place", catalog, cwe(837)),
  skip(125, "filler words around a question", "concerns relevance: npm run relevance", cwe(407)),
  row(126, "large answers that stay unread", "Each unread answer stays in memory.", cwe(770)),
  skip(127, "one customer reads another's figures", tenants, cwe(639)),
  skip(128, "searches that are kept", "shows only in the target's database", cwe(770)),
  row(129, "wrong keys lock out the right one", "A stranger stops a customer.", cwe(645)),
  row(130, "sessions that never end", "Open streams use up the connections.", cwe(772)),
  skip(131, "a proof of other bytes", log, cwe(345)),
  skip(132, "a channel's record restored from a backup", channel, cwe(662)),
  skip(133, "attacks that held: failovers, kill points, stored payloads", process)
]
