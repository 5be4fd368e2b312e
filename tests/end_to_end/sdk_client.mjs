// What the official OpenAI SDK for Node makes of each answer: sdk_client.mjs BASE_URL CASE... prints one JSON line for each case and mode.
import { createRequire } from 'node:module';
const { OpenAI } = createRequire(process.env.SDK_MODULES + '/')('openai');

const [url, ...cases] = process.argv.slice(2);
const client = new OpenAI({ baseURL: url + '/v1', apiKey: 'none', maxRetries: 0, timeout: 20000 });

async function ask(model, stream) {
    const answer = await client.chat.completions.create({ model, messages: [{ role: 'user', content: 'x' }], stream });
    if (!stream) return { text: answer.choices[0].message.content, reason: answer.choices[0].finish_reason };
    let text = '', reason = null;
    for await (const event of answer) {
        for (const choice of event.choices) {
            text += choice.delta.content ?? '';
            reason = choice.finish_reason ?? reason;
        }
    }
    return { text, reason };
}

for (const name of cases) {
    for (const stream of [true, false]) {
        let line = { case: name, stream, text: null, reason: null, error: null };
        try {
            line = { ...line, ...(await ask(name, stream)) };
        } catch (error) {
            line.error = `${error.constructor.name}: ${error.message}`.slice(0, 500);
        }
        console.log(JSON.stringify(line));
    }
}
