package thalweg;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.List;
import java.util.Map;

/** The messages of shapes.proto as plain classes without Protobuf, for Jackson. */
final class Plain {
  private Plain() {}

  public enum Level { TRACE, DEBUG, INFO, WARN, ERROR }

  public static final class Person {
    private String name;
    private int age;
    private List<String> hobbies;
    private Address address;

    @JsonProperty("name")
    public String getName() { return name; }

    @JsonProperty("name")
    public void setName(String name) { this.name = name; }

    @JsonProperty("age")
    public int getAge() { return age; }

    @JsonProperty("age")
    public void setAge(int age) { this.age = age; }

    @JsonProperty("hobbies")
    public List<String> getHobbies() { return hobbies; }

    @JsonProperty("hobbies")
    public void setHobbies(List<String> hobbies) { this.hobbies = hobbies; }

    @JsonProperty("address")
    public Address getAddress() { return address; }

    @JsonProperty("address")
    public void setAddress(Address address) { this.address = address; }
  }

  public static final class Address {
    private String city;
    private String zipCode;

    @JsonProperty("city")
    public String getCity() { return city; }

    @JsonProperty("city")
    public void setCity(String city) { this.city = city; }

    @JsonProperty("zip_code")
    public String getZipCode() { return zipCode; }

    @JsonProperty("zip_code")
    public void setZipCode(String zipCode) { this.zipCode = zipCode; }
  }

  public static final class SeveralData {
    private float aFloat;
    private double aDouble;
    private int anInt32;
    private long anInt64;
    private boolean aBool;
    private String aString;
    private List<String> strings;

    @JsonProperty("a_float")
    public float getAFloat() { return aFloat; }

    @JsonProperty("a_float")
    public void setAFloat(float aFloat) { this.aFloat = aFloat; }

    @JsonProperty("a_double")
    public double getADouble() { return aDouble; }

    @JsonProperty("a_double")
    public void setADouble(double aDouble) { this.aDouble = aDouble; }

    @JsonProperty("an_int32")
    public int getAnInt32() { return anInt32; }

    @JsonProperty("an_int32")
    public void setAnInt32(int anInt32) { this.anInt32 = anInt32; }

    @JsonProperty("an_int64")
    public long getAnInt64() { return anInt64; }

    @JsonProperty("an_int64")
    public void setAnInt64(long anInt64) { this.anInt64 = anInt64; }

    @JsonProperty("a_bool")
    public boolean getABool() { return aBool; }

    @JsonProperty("a_bool")
    public void setABool(boolean aBool) { this.aBool = aBool; }

    @JsonProperty("a_string")
    public String getAString() { return aString; }

    @JsonProperty("a_string")
    public void setAString(String aString) { this.aString = aString; }

    @JsonProperty("strings")
    public List<String> getStrings() { return strings; }

    @JsonProperty("strings")
    public void setStrings(List<String> strings) { this.strings = strings; }
  }

  public static final class Order {
    private String id;
    private String customer;
    private String email;
    private long createdAt;
    private long updatedAt;
    private int quantity;
    private double price;
    private String currency;
    private boolean paid;
    private boolean gift;
    private String note;
    private String coupon;
    private int warehouse;

    @JsonProperty("id")
    public String getId() { return id; }

    @JsonProperty("id")
    public void setId(String id) { this.id = id; }

    @JsonProperty("customer")
    public String getCustomer() { return customer; }

    @JsonProperty("customer")
    public void setCustomer(String customer) { this.customer = customer; }

    @JsonProperty("email")
    public String getEmail() { return email; }

    @JsonProperty("email")
    public void setEmail(String email) { this.email = email; }

    @JsonProperty("created_at")
    public long getCreatedAt() { return createdAt; }

    @JsonProperty("created_at")
    public void setCreatedAt(long createdAt) { this.createdAt = createdAt; }

    @JsonProperty("updated_at")
    public long getUpdatedAt() { return updatedAt; }

    @JsonProperty("updated_at")
    public void setUpdatedAt(long updatedAt) { this.updatedAt = updatedAt; }

    @JsonProperty("quantity")
    public int getQuantity() { return quantity; }

    @JsonProperty("quantity")
    public void setQuantity(int quantity) { this.quantity = quantity; }

    @JsonProperty("price")
    public double getPrice() { return price; }

    @JsonProperty("price")
    public void setPrice(double price) { this.price = price; }

    @JsonProperty("currency")
    public String getCurrency() { return currency; }

    @JsonProperty("currency")
    public void setCurrency(String currency) { this.currency = currency; }

    @JsonProperty("paid")
    public boolean getPaid() { return paid; }

    @JsonProperty("paid")
    public void setPaid(boolean paid) { this.paid = paid; }

    @JsonProperty("gift")
    public boolean getGift() { return gift; }

    @JsonProperty("gift")
    public void setGift(boolean gift) { this.gift = gift; }

    @JsonProperty("note")
    public String getNote() { return note; }

    @JsonProperty("note")
    public void setNote(String note) { this.note = note; }

    @JsonProperty("coupon")
    public String getCoupon() { return coupon; }

    @JsonProperty("coupon")
    public void setCoupon(String coupon) { this.coupon = coupon; }

    @JsonProperty("warehouse")
    public int getWarehouse() { return warehouse; }

    @JsonProperty("warehouse")
    public void setWarehouse(int warehouse) { this.warehouse = warehouse; }
  }

  public static final class LogRecord {
    private long timeNs;
    private Level level;
    private String service;
    private String message;
    private String trace;
    private int status;
    private long tookNs;

    @JsonProperty("time_ns")
    public long getTimeNs() { return timeNs; }

    @JsonProperty("time_ns")
    public void setTimeNs(long timeNs) { this.timeNs = timeNs; }

    @JsonProperty("level")
    public Level getLevel() { return level; }

    @JsonProperty("level")
    public void setLevel(Level level) { this.level = level; }

    @JsonProperty("service")
    public String getService() { return service; }

    @JsonProperty("service")
    public void setService(String service) { this.service = service; }

    @JsonProperty("message")
    public String getMessage() { return message; }

    @JsonProperty("message")
    public void setMessage(String message) { this.message = message; }

    @JsonProperty("trace")
    public String getTrace() { return trace; }

    @JsonProperty("trace")
    public void setTrace(String trace) { this.trace = trace; }

    @JsonProperty("status")
    public int getStatus() { return status; }

    @JsonProperty("status")
    public void setStatus(int status) { this.status = status; }

    @JsonProperty("took_ns")
    public long getTookNs() { return tookNs; }

    @JsonProperty("took_ns")
    public void setTookNs(long tookNs) { this.tookNs = tookNs; }
  }

  public static final class Visit {
    private String session;
    private Visitor visitor;
    private Campaign campaign;
    private List<Event> events;

    @JsonProperty("session")
    public String getSession() { return session; }

    @JsonProperty("session")
    public void setSession(String session) { this.session = session; }

    @JsonProperty("visitor")
    public Visitor getVisitor() { return visitor; }

    @JsonProperty("visitor")
    public void setVisitor(Visitor visitor) { this.visitor = visitor; }

    @JsonProperty("campaign")
    public Campaign getCampaign() { return campaign; }

    @JsonProperty("campaign")
    public void setCampaign(Campaign campaign) { this.campaign = campaign; }

    @JsonProperty("events")
    public List<Event> getEvents() { return events; }

    @JsonProperty("events")
    public void setEvents(List<Event> events) { this.events = events; }
  }

  public static final class Visitor {
    private long id;
    private String country;
    private Device device;

    @JsonProperty("id")
    public long getId() { return id; }

    @JsonProperty("id")
    public void setId(long id) { this.id = id; }

    @JsonProperty("country")
    public String getCountry() { return country; }

    @JsonProperty("country")
    public void setCountry(String country) { this.country = country; }

    @JsonProperty("device")
    public Device getDevice() { return device; }

    @JsonProperty("device")
    public void setDevice(Device device) { this.device = device; }
  }

  public static final class Device {
    private String system;
    private String browser;
    private int width;
    private int height;

    @JsonProperty("system")
    public String getSystem() { return system; }

    @JsonProperty("system")
    public void setSystem(String system) { this.system = system; }

    @JsonProperty("browser")
    public String getBrowser() { return browser; }

    @JsonProperty("browser")
    public void setBrowser(String browser) { this.browser = browser; }

    @JsonProperty("width")
    public int getWidth() { return width; }

    @JsonProperty("width")
    public void setWidth(int width) { this.width = width; }

    @JsonProperty("height")
    public int getHeight() { return height; }

    @JsonProperty("height")
    public void setHeight(int height) { this.height = height; }
  }

  public static final class Campaign {
    private String source;
    private String medium;
    private String name;

    @JsonProperty("source")
    public String getSource() { return source; }

    @JsonProperty("source")
    public void setSource(String source) { this.source = source; }

    @JsonProperty("medium")
    public String getMedium() { return medium; }

    @JsonProperty("medium")
    public void setMedium(String medium) { this.medium = medium; }

    @JsonProperty("name")
    public String getName() { return name; }

    @JsonProperty("name")
    public void setName(String name) { this.name = name; }
  }

  public static final class Event {
    private String name;
    private long timeMs;
    private String page;
    private double value;
    private Map<String, String> labels;

    @JsonProperty("name")
    public String getName() { return name; }

    @JsonProperty("name")
    public void setName(String name) { this.name = name; }

    @JsonProperty("time_ms")
    public long getTimeMs() { return timeMs; }

    @JsonProperty("time_ms")
    public void setTimeMs(long timeMs) { this.timeMs = timeMs; }

    @JsonProperty("page")
    public String getPage() { return page; }

    @JsonProperty("page")
    public void setPage(String page) { this.page = page; }

    @JsonProperty("value")
    public double getValue() { return value; }

    @JsonProperty("value")
    public void setValue(double value) { this.value = value; }

    @JsonProperty("labels")
    public Map<String, String> getLabels() { return labels; }

    @JsonProperty("labels")
    public void setLabels(Map<String, String> labels) { this.labels = labels; }
  }

  public static final class Samples {
    private String sensor;
    private long beginMs;
    private List<Integer> deltas;
    private List<Double> values;
    private List<Float> weights;
    private List<Long> counts;
    private List<Boolean> flags;

    @JsonProperty("sensor")
    public String getSensor() { return sensor; }

    @JsonProperty("sensor")
    public void setSensor(String sensor) { this.sensor = sensor; }

    @JsonProperty("begin_ms")
    public long getBeginMs() { return beginMs; }

    @JsonProperty("begin_ms")
    public void setBeginMs(long beginMs) { this.beginMs = beginMs; }

    @JsonProperty("deltas")
    public List<Integer> getDeltas() { return deltas; }

    @JsonProperty("deltas")
    public void setDeltas(List<Integer> deltas) { this.deltas = deltas; }

    @JsonProperty("values")
    public List<Double> getValues() { return values; }

    @JsonProperty("values")
    public void setValues(List<Double> values) { this.values = values; }

    @JsonProperty("weights")
    public List<Float> getWeights() { return weights; }

    @JsonProperty("weights")
    public void setWeights(List<Float> weights) { this.weights = weights; }

    @JsonProperty("counts")
    public List<Long> getCounts() { return counts; }

    @JsonProperty("counts")
    public void setCounts(List<Long> counts) { this.counts = counts; }

    @JsonProperty("flags")
    public List<Boolean> getFlags() { return flags; }

    @JsonProperty("flags")
    public void setFlags(List<Boolean> flags) { this.flags = flags; }
  }
}
