// An agent as somebody would write it with Supabase's client, which knows nothing of Tributary. What it does and hears it prints, a line of JSON
// each: that is its ledger.
//
//   node agent.mjs work     URL KEY NAME VSN   claims and completes, and waits to be woken by an insert
//   node agent.mjs listen   URL KEY NAME VSN   tells what it hears, and obeys lines on stdin: "leave", "end"
//   node agent.mjs complete URL KEY NAME ID    tries to complete somebody's activity
//   node agent.mjs who      URL KEY NAME ID    asks who it is, and who the person with this number is
//   node agent.mjs claim    URL KEY NAME ID    claims five times for the person with this number; "" leaves it out
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(`${process.env.NODE_PACKAGES_DIR}/package.json`);
const { createClient } = require("@supabase/supabase-js");
const [what, url, key, name, last] = process.argv.slice(2);
const say = (event, more = {}) => console.log(JSON.stringify({ event, ...more }));
// Node 20 has no WebSocket of its own.
const realtime = { transport: require("ws"), vsn: ["work", "listen"].includes(what) ? last : "2.0.0" };
const supabase = createClient(url, key, { realtime, auth: { persistSession: false, autoRefreshToken: false } });
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

const complete = (id, epoch) => {
  const result = { processing_status: "completed", processed_data: { summary: `done by ${name}`, by: name } };
  const update = supabase.from("activities").update(result).eq("id", id);
  return (epoch === undefined ? update : update.eq("lock_epoch", epoch)).select();
};

// Who slept finds its connection closed, and the client does not try again by itself.
const completeAnyway = async (id, epoch) => {
  for (let tries = 1; ; tries++) {
    const result = await complete(id, epoch);
    if (result.status !== 0 || tries === 3) return result;
    await wait(100);
  }
};

const claim = async () => {
  for (const rpc of ["claim_next_pending_activity", "claim_stale_activity"]) {
    const { data, error } = await supabase.rpc(rpc);
    if (error) return say("claim refused", { code: error.code, message: error.message });
    if (data.length > 0) return data[0];
  }
};

const work = async () => {
  let woken = () => {};
  supabase
    .channel("work")
    .on("postgres_changes", { event: "INSERT", schema: "public", table: "activities", filter: "processing_status=eq.raw" }, () => woken())
    .subscribe((status) => say("status", { status }));
  for (;;) {
    const wake = new Promise((done) => (woken = done));
    const claimed = await claim();
    if (!claimed) {
      say("idle");
      await Promise.race([wake, wait(30_000)]);
      continue;
    }
    const { id, lock_epoch, raw_data } = claimed;
    say("claimed", { id, lock_epoch });
    await wait(Number(process.env.WORK_MS) + (raw_data.content.length % 5)); // what takes an agent its time
    const { data, error, status } = await completeAnyway(id, lock_epoch);
    if (error) say("refused", { id, lock_epoch, status, code: error.code, message: error.message });
    else if (data.length === 1) say("completed", { id, lock_epoch });
    else say("lost", { id, lock_epoch });
  }
};

const listen = () => {
  const tell = (on) => (change) => say("heard", { on, at: Date.now(), change });
  const of = { schema: "public", table: "activities" };
  const channel = supabase
    .channel("listen")
    .on("postgres_changes", { event: "INSERT", ...of, filter: "processing_status=eq.raw" }, tell("raw inserts"))
    .on("postgres_changes", { event: "INSERT", ...of, filter: "type=eq.call,processing_status=in.(raw,processing)" }, tell("calls"))
    .on("postgres_changes", { event: "UPDATE", ...of }, tell("updates"))
    .on("postgres_changes", { event: "*", schema: "public" }, tell("everything"))
    .subscribe((status, error) => say("status", { status, error: error?.message }));
  supabase
    .channel("unknown")
    .on("postgres_changes", { event: "*", schema: "public", table: "tenants" }, tell("tenants"))
    .subscribe((status, error) => status === "CHANNEL_ERROR" && say("unknown refused", { error: error?.message }));
  createInterface({ input: process.stdin }).on("line", async (line) => {
    if (line === "leave") say("left", { how: await supabase.removeChannel(channel) });
    if (line === "end") process.exit(0);
  });
};

const who = async () => {
  const told = ({ data, error, status }) => ({ status, data, code: error?.code });
  say("me", told(await supabase.from("sales").select().single()));
  say("all", told(await supabase.from("sales").select("id,email", { count: "exact" })));
  say("other", told(await supabase.from("sales").select("id,email").eq("id", last).maybeSingle()));
  say("change", told(await supabase.from("sales").update({ email: "mallory@office.test" }).eq("id", last).select()));
  say("insert", told(await supabase.from("sales").insert({ email: "mallory@office.test" }).select()));
};

const claimFor = async () => {
  const whom = last === "" ? {} : { p_agent_sales_id: last === "null" ? null : Number(last) };
  for (let n = 0; n < 5; n++) {
    const { data, error, status } = await supabase.rpc("claim_next_pending_activity", whom);
    say("claim", { status, content: data?.[0]?.raw_data.content, is_global: data?.[0]?.is_global, code: error?.code });
  }
  say("over");
};

if (what === "work") await work();
else if (what === "listen") listen();
else if (what === "who") await who();
else if (what === "claim") await claimFor();
else {
  const { data, error, status } = await complete(last);
  say("tried", { status, rows: data?.length, code: error?.code });
}
